#!/bin/sh
# Puts the compacted segments beside this script in place of those they were made from, by hand.
#
#     sh swap.sh            swap; the originals stay beside the new files, under names a broker ignores
#     sh swap.sh --undo     put the originals back
#     sh swap.sh --purge    remove the originals: from then on there is no way back
#
# The broker must be stopped, and stay so until the script has ended. Nothing is changed unless all
# files are what they were when the segments were made, by size and SHA-256. Interrupted at any step
# it may be run again, either way, and a broker that is started meanwhile finishes or undoes the
# group of segments it was at; so after a power cut. Needs sha256sum and stat of GNU or BusyBox.
set -eu
LC_ALL=C
export LC_ALL
unset CDPATH

run=@RUN@
checkpoint=cleaner-offset-checkpoint

# For each group of segments: command, partition directory, directory here, lines "name bytes sha256"
# of the originals in ascending order, of their producer snapshots that go, and of the new files; the
# steps that put the new ones in place of the originals, and back.
each_group() {
    :
@GROUPS@
}

# The same from the last to the first: a tombstone must be back before the value it deletes.
each_group_back() {
    :
@GROUPS_BACK@
}

# For each partition directory: command, partition directory, directory here.
each_partition() {
    :
@PARTITIONS@
}

# For each log dir: command, log dir, a number, lines "topic partition offset" of its checkpoint.
each_log_dir() {
    :
@LOG_DIRS@
}

say() { printf '%s\n' "$*"; }

die() {
    printf 'swap.sh: %s\n' "$*" >&2
    exit 1
}

aside() { printf '%s/kafkalog-swap-%s-%s.original' "$1" "$run" "$2"; }
staged() { printf '%s/kafkalog-swap-%s-%s.new' "$1" "$run" "$2"; }
owner_of() { stat -c %u:%g -- "$1"; }

# Whether a file is there and has so many bytes and this SHA-256.
is() {
    [ -f "$1" ] && [ ! -h "$1" ] || return 1
    [ "$(($(wc -c <"$1")))" = "$2" ] || return 1
    found=$(sha256sum <"$1")
    [ "${found%% *}" = "$3" ]
}

# Whether two files are one, or as like as a copy.
same() {
    [ -f "$1" ] && [ -f "$2" ] || return 1
    [ "$1" -ef "$2" ] && return 0
    [ "$(stat -c %y -- "$1")" = "$(stat -c %y -- "$2")" ] && cmp -s -- "$1" "$2"
}

# Files, or the names in a directory, are on disk when it ends. Of what is not, a power cut may take
# any part in any order. A sync that knows no arguments says so and writes everything.
to_disk() { sync -- "$@"; }

# A second name for a file; a copy where the file system has none.
keep() {
    ln -- "$1" "$2" 2>/dev/null || {
        cp -p -- "$1" "$2"
        to_disk "$2"
    }
}

# Whether the group is in the middle of its swap: its first .log is on its way.
on_its_way() {
    first=${2%% *}
    [ -f "$1/$first.swap" ] || [ -f "$1/$first.cleaned" ]
}

# Whoever goes the other way first ends what was begun: a loader would throw away what is on its way
# if it found a .cleaned beside it, when its counterpart may be gone.
swap_is_on_its_way() {
    for name in $(names_of "$3"); do
        if same "$1/$name.swap" "$2/$name" && ! same "$1/$name.swap" "$(aside "$1" "$name")"; then return 0; fi
    done
    return 1
}

undo_is_on_its_way() {
    for name in $(names_of "$2"); do
        if same "$1/$name.swap" "$(aside "$1" "$name")"; then return 0; fi
    done
    return 1
}

# .log files first, each segment's with its own.
names_of() { printf '%s\n' "$1" | while read -r name _; do [ -z "$name" ] || printf '%s\n' "$name"; done; }

has_line() {
    case "
$1
" in
    *"
$2
"*) return 0 ;;
    *) return 1 ;;
    esac
}

# -- checks: all of them before anything is changed -------------------------------------------------

check_stopped() {
    [ -e "$1/.lock" ] && [ -r /proc/locks ] || return 0
    inode=$(stat -c %i -- "$1/.lock")
    if holder=$(grep -E "POSIX .*:$inode [0-9]+ " /proc/locks); then
        die "$1: a process holds the lock of this log dir, most likely a running broker: stop it first ($holder)"
    fi
}

check_checkpoint() {
    check_stopped "$1"
    file=$1/$checkpoint
    [ ! -e "$file" ] || awk 'NR == 1 && $0 != "0" { exit 1 } NR == 2 { n = $0 } NR > 2 && NF != 3 { exit 1 }
        END { if (NR && (NR < 2 || n != NR - 2)) exit 1 }' "$file" || die "$file: not a checkpoint file of version 0"
}

check_partition() {
    [ -d "$1" ] || die "$1: no such directory"
    [ -w "$1" ] || die "$1: may not be written to"
}

# Every original where it was or set aside, every live file an original or a new one.
check_group() {
    dir=$1 sub=$2 old=$3 snapshots=$4 new=$5 undo=${undoing:-}
    printf '%s\n' "$old" "$snapshots" | while read -r name size sum; do
        [ -n "$name" ] || continue
        is "$dir/$name" "$size" "$sum" && continue
        is "$(aside "$dir" "$name")" "$size" "$sum" ||
            die "$dir/$name: not the $size bytes the new segments were made from: nothing was changed"
    done || exit 1
    printf '%s\n' "$new" | while read -r name size sum; do
        [ -n "$undo" ] || is "$sub/$name" "$size" "$sum" ||
            die "$sub/$name: not the $size bytes that were written here: nothing was changed"
        if is "$dir/$name" "$size" "$sum"; then continue; fi
        is_original "$dir" "$name" "$old" && continue
        [ -e "$dir/$name" ] && die "$dir/$name: neither an original nor a new file: nothing was changed"
        case $name in *.log) ;; *) continue ;; esac
        on_its_way "$dir" "$old" || die "$dir/$name: is gone, so somebody changed the partition: nothing was changed"
    done || exit 1
}

check_ended() {
    for name in $(names_of "$3
$5"); do
        if [ -e "$1/$name.swap" ] || [ -e "$1/$name.cleaned" ]; then
            die "$1: its swap has not ended: run swap.sh or swap.sh --undo first"
        fi
    done
}

# Whether the live file of this name is the original.
is_original() {
    line=$(printf '%s\n' "$3" | grep -E "^$2 ") || return 1
    rest=${line#* }
    is "$1/$2" "${rest% *}" "${rest#* }"
}

# -- swap -------------------------------------------------------------------------------------------

remember_partition() {
    [ ! -e "$2/directory.time" ] || return 0
    touch -r "$1" "$2/directory.tmp"
    to_disk "$2/directory.tmp"
    mv -f -- "$2/directory.tmp" "$2/directory.time"
    to_disk "$2"
}

# As long as a .cleaned is left nothing has gone: what was on its way goes, as a loader does it.
forget_unfinished() {
    names=$(names_of "$2
$3")
    unfinished=
    for name in $names; do [ ! -e "$1/$name.cleaned" ] || unfinished=1; done
    [ -n "$unfinished" ] || return 0
    for name in $names; do rm -f -- "$1/$name.swap"; done
    to_disk "$1"
    for name in $names; do rm -f -- "$1/$name.cleaned"; done
}

# In the order of a broker's cleaner: directory, steps. Those that were taken before change nothing:
# what would get another name is gone, and what came in place of a file is not removed for it.
take_steps() {
    printf '%s\n' "$2" | while read -r action source target; do
        case $action in
        rename) [ ! -e "$1/$source" ] || mv -f -- "$1/$source" "$1/$target" ;;
        remove)
            if has_line "$2" "rename $source.swap $source" && [ ! -e "$1/$source.swap" ]; then continue; fi
            rm -f -- "$1/$source"
            ;;
        sync) to_disk "$1" ;;
        esac
    done || exit 1
}

swap_group() {
    forget_unfinished "$1" "$3" "$5"
    if undo_is_on_its_way "$1" "$3"; then undo_group "$@"; fi
    dir=$1 sub=$2 old=$3 snapshots=$4 new=$5
    todo=$(for name in $(names_of "$new"); do
        same "$dir/$name" "$sub/$name" || printf '%s\n' "$name"
    done)
    # What is on its way already stays so: a .cleaned now would undo it, when its originals may be gone.
    unstaged=$(for name in $todo; do
        same "$dir/$name.swap" "$sub/$name" || printf '%s\n' "$name"
    done)
    like=$dir/${old%% *}
    [ -e "$like" ] || like=$(aside "$dir" "${old%% *}")
    for name in $unstaged; do
        to=$(staged "$dir" "$name")
        rm -f -- "$to"
        cp -p -- "$sub/$name" "$to"
        [ "$(owner_of "$to")" = "$(owner_of "$like")" ] || chown "$(owner_of "$like")" "$to" ||
            die "$to: cannot be given to the owner of $like: run this as that user or as root"
        chmod "$(stat -c %a -- "$like")" "$to"
        cmp -s -- "$sub/$name" "$to" || die "$to: differs from the file it was copied from"
        to_disk "$to"
    done
    printf '%s\n' "$old" "$snapshots" | while read -r name size sum; do
        [ -n "$name" ] || continue
        kept=$(aside "$dir" "$name")
        if ! is "$kept" "$size" "$sum"; then
            rm -f -- "$kept"
            keep "$dir/$name" "$kept"
        fi
    done
    to_disk "$dir"
    for name in $unstaged; do mv -f -- "$(staged "$dir" "$name")" "$dir/$name.cleaned"; done
    to_disk "$dir"
    take_steps "$dir" "$6"
    for name in $(names_of "$snapshots"); do rm -f -- "$dir/$name"; done
    to_disk "$dir"
    say "$dir: $(names_of "$new" | grep -c '[.]log$') segment in place of $(names_of "$old" | grep -c '[.]log$')"
}

# -- undo -------------------------------------------------------------------------------------------

# The originals take the place of the new segment as when a broker splits one.
undo_group() {
    forget_unfinished "$1" "$3" "$5"
    if swap_is_on_its_way "$1" "$2" "$5"; then swap_group "$@"; fi
    dir=$1 old=$3 snapshots=$4 new=$5
    todo=$(for name in $(names_of "$old"); do
        kept=$(aside "$dir" "$name")
        [ ! -e "$kept" ] || same "$dir/$name" "$kept" || printf '%s\n' "$name"
    done)
    for name in $(names_of "$new"); do rm -f -- "$(staged "$dir" "$name")"; done
    bases=$(for name in $todo; do printf '%s\n' "${name%%.*}"; done | sort -ru)
    unstaged=$(for base in $bases; do
        for name in $todo; do
            case $name in "$base".*)
                same "$dir/$name.swap" "$(aside "$dir" "$name")" || printf '%s\n' "$name"
                ;;
            esac
        done
    done)
    for name in $unstaged; do keep "$(aside "$dir" "$name")" "$dir/$name.cleaned"; done
    to_disk "$dir"
    take_steps "$dir" "$7"
    for name in $(names_of "$new"); do
        has_line "$(names_of "$old")" "$name" || rm -f -- "$dir/$name.swap"
    done
    for name in $(names_of "$snapshots"); do
        kept=$(aside "$dir" "$name")
        if [ -e "$kept" ] && ! same "$dir/$name" "$kept"; then
            rm -f -- "$dir/$name"
            keep "$kept" "$dir/$name"
        fi
    done
    to_disk "$dir"
    say "$dir: the originals are back"
}

purge_group() {
    for name in $(names_of "$3
$4"); do rm -f -- "$(aside "$1" "$name")"; done
    to_disk "$1"
}

restore_partition() {
    if [ -e "$2/directory.time" ]; then
        touch -r "$2/directory.time" "$1"
        to_disk "$1"
    fi
    rm -f -- "$2/directory.time" "$2/directory.tmp"
    to_disk "$2"
}

# -- the cleaner's checkpoint -----------------------------------------------------------------------

# Lines of the file, then these: of each partition the last one counts, "-" takes its line out.
merged_lines() {
    { [ ! -s "$1/$checkpoint" ] || tail -n +3 "$1/$checkpoint"; printf '%s\n' "$2"; } |
        awk 'NF == 3 { last[$1 " " $2] = $3 } END { for (p in last) if (last[p] != "-") print p, last[p] }' |
        sort -k1,1 -k2,2n |
        while read -r topic number offset; do
            [ ! -d "$1/$topic-$number" ] || printf '%s %s %s\n' "$topic" "$number" "$offset"
        done
}

write_checkpoint() {
    body=$(merged_lines "$1" "$2")
    count=0
    [ -z "$body" ] || count=$(($(printf '%s\n' "$body" | wc -l)))
    like=$1/$checkpoint
    [ -e "$like" ] || like=$1
    { printf '0\n%s\n' "$count"; [ -z "$body" ] || printf '%s\n' "$body"; } >"$1/$checkpoint.tmp"
    [ "$(owner_of "$1/$checkpoint.tmp")" = "$(owner_of "$like")" ] || chown "$(owner_of "$like")" "$1/$checkpoint.tmp"
    if [ -f "$like" ]; then chmod "$(stat -c %a -- "$like")" "$1/$checkpoint.tmp"; else chmod 644 "$1/$checkpoint.tmp"; fi
    to_disk "$1/$checkpoint.tmp"
}

put_checkpoint() {
    mv -f -- "$1/$checkpoint.tmp" "$1/$checkpoint"
    to_disk "$1"
}

swap_checkpoint() {
    kept=$(aside "$1" "$checkpoint")
    if [ ! -e "$kept" ] && [ ! -e "checkpoint-$2.none" ]; then
        if [ -e "$1/$checkpoint" ]; then
            rm -f -- "$kept.tmp"
            keep "$1/$checkpoint" "$kept.tmp"
            mv -f -- "$kept.tmp" "$kept"
        else
            : >"checkpoint-$2.none"
        fi
    fi
    write_checkpoint "$1" "$3"
    cp -- "$1/$checkpoint.tmp" "checkpoint-$2.written"
    to_disk "checkpoint-$2.written" . "$1"
    put_checkpoint "$1"
}

undo_checkpoint() {
    kept=$(aside "$1" "$checkpoint")
    if [ ! -e "$kept" ] && [ ! -e "checkpoint-$2.none" ]; then
        : # it was never kept, or is back
    elif [ -e "$kept" ] && cmp -s -- "$1/$checkpoint" "$kept"; then
        : # it was not written yet
    elif [ ! -e "$kept" ] && [ ! -e "$1/$checkpoint" ]; then
        :
    elif cmp -s -- "$1/$checkpoint" "checkpoint-$2.written"; then
        if [ -e "$kept" ]; then mv -f -- "$kept" "$1/$checkpoint"; else rm -f -- "$1/$checkpoint"; fi
    elif [ -e "checkpoint-$2.written" ]; then # somebody wrote it since: take our own lines back
        lines=$(printf '%s\n' "$3" | while read -r topic number _; do
            before=
            [ ! -e "$kept" ] || before=$(
                awk -v t="$topic" -v n="$number" 'NR > 2 && $1 == t && $2 == n { print $3 }' "$kept"
            )
            printf '%s %s %s\n' "$topic" "$number" "${before:--}"
        done)
        write_checkpoint "$1" "$lines"
        put_checkpoint "$1"
    fi
    to_disk "$1"
    purge_checkpoint "$@"
}

purge_checkpoint() {
    rm -f -- "$(aside "$1" "$checkpoint")" "$(aside "$1" "$checkpoint").tmp" "$1/$checkpoint.tmp"
    to_disk "$1"
    rm -f -- "checkpoint-$2.written" "checkpoint-$2.none"
    to_disk .
}

# ---------------------------------------------------------------------------------------------------

case $0 in
/*) here=$0 ;;
*) here=./$0 ;;
esac
here=$(dirname "$here" && printf x)
cd "${here%?x}"

what=${1:-swap}
[ $# -le 1 ] || die "one argument at most: --undo or --purge"
case $what in
swap | --undo | --purge) ;;
*) die "$what: --undo and --purge are all it takes" ;;
esac

each_log_dir check_checkpoint
each_partition check_partition
sync # what an interrupted run left
case $what in
swap)
    each_group check_group
    each_partition remember_partition
    each_group swap_group
    each_log_dir swap_checkpoint
    say "done; sh $0 --undo takes it back, sh $0 --purge gives the space of the originals back"
    ;;
--undo)
    undoing=1
    each_group check_group
    each_group_back undo_group
    each_log_dir undo_checkpoint
    each_group purge_group
    each_partition restore_partition
    say "done: everything is as it was before the swap"
    ;;
--purge)
    each_group check_ended
    each_group purge_group
    each_log_dir purge_checkpoint
    say "done: beside the logs nothing of the originals is kept any more"
    ;;
esac
