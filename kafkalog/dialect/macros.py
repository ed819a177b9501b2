"""Functions that DuckDB lacks, or has with another meaning, in its own SQL.

`error(…)` is where only Spark knows the answer, or where Spark raises too. A macro's argument is
put in wherever its name stands, so DuckDB computes it once by its common subexpressions.
"""

from __future__ import annotations

# A whole character, or (second group) what Java's decoder replaces by one U+FFFD: the longest
# beginning of a character, else one byte. Over hexadecimal digits, two for each byte.
_TAIL = "[89AB]."
_CHARACTER = (
    f"[0-7].|(?:C[2-9A-F]|D.){_TAIL}|E0[AB].{_TAIL}|(?:E[1-9A-CEF]){_TAIL}{_TAIL}|ED[89].{_TAIL}"
    f"|F0[9AB].{_TAIL}{_TAIL}|F[1-3]{_TAIL}{_TAIL}{_TAIL}|F48.{_TAIL}{_TAIL}"
)
_BROKEN = (
    f"ED[AB].{_TAIL}|E0[AB].|(?:E[1-9A-CEF]){_TAIL}|ED[89].|ED[AB]."
    f"|F0[9AB].{_TAIL}|F[1-3]{_TAIL}{_TAIL}|F48.{_TAIL}|F0[9AB].|F[1-3]{_TAIL}|F48.|.."
)
_SPACES = "[\\x00-\\x20\\x7f]*"
# Letters whose other case is several letters in Java, or depends on its neighbours or on Unicode's
# version: found by comparing all up to U+1FFFF.
_UPPER_DIFFERS = (
    "[\\x{149}\\x{19b}\\x{1f0}\\x{264}\\x{390}\\x{3b0}\\x{587}\\x{1c8a}"
    "\\x{1e96}-\\x{1e9a}"
    "\\x{1f50}-\\x{1fff}\\x{a7cd}-\\x{a7db}\\x{fb00}-\\x{fb17}\\x{10000}-\\x{1efff}]"
)
_LOWER_DIFFERS = "[\\x{130}\\x{3a3}\\x{1c89}\\x{a7cb}-\\x{a7dc}\\x{10000}-\\x{1efff}]"
_ENGINE = "run the query with --engine spark"

MACROS: tuple[str, ...] = tuple(
    f"CREATE OR REPLACE MACRO {macro.strip()}"
    for macro in (
        # -- texts made of bytes
        f"""spark_broken_text(b) AS decode(unhex(array_to_string(list_transform(
            regexp_extract_all(hex(b), '{_CHARACTER}|{_BROKEN}'),
            lambda c: CASE WHEN regexp_full_match(c, '{_CHARACTER}') THEN c ELSE 'EFBFBD' END),
            '')))""",
        "spark_text(b) AS coalesce(try(decode(b)), spark_broken_text(b))",
        f"""spark_exact_text(b) AS CASE WHEN b IS NULL THEN NULL ELSE coalesce(try(decode(b)),
            error('a text function met bytes that are no UTF-8: {_ENGINE}')) END""",
        # -- numbers
        "spark_quotient(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('division by zero') "
        "ELSE a / b END",
        "spark_whole_quotient(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL "
        "THEN error('division by zero') ELSE a // b END",
        "spark_remainder(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('division by zero') "
        "ELSE a % b END",
        "spark_half_up(a, b) AS CASE WHEN (a < 0) = (b < 0) THEN (abs(a) + abs(b) // 2) // abs(b) "
        "ELSE -((abs(a) + abs(b) // 2) // abs(b)) END",
        "spark_digits(t, scale) AS left(t, length(t) - scale) || '.' || right(t, scale)",
        """spark_scaled(n, scale) AS CASE WHEN n < 0 THEN '-' ELSE '' END || (
            spark_digits(lpad(CAST(abs(n) AS VARCHAR),
                greatest(scale + 1, length(CAST(abs(n) AS VARCHAR)))::INTEGER, '0'), scale))""",
        """spark_decimal_quotient(a, b, scale) AS CASE
            WHEN b = 0 AND a IS NOT NULL THEN error('division by zero')
            ELSE spark_scaled(spark_half_up(a, b), scale) END""",
        # -- texts read as values
        f"""spark_text_to_bigint(t, kind) AS CASE WHEN t IS NULL THEN NULL
            WHEN regexp_full_match(t, '{_SPACES}[+-]?[0-9]+{_SPACES}')
            THEN CAST(regexp_replace(t, '[\\x00-\\x20\\x7f]', '', 'g') AS BIGINT)
            ELSE error('the text ''' || left(t, 40) || ''' is no ' || kind) END""",
        """spark_try_integer(n, kind) AS CASE kind
            WHEN 'tinyint' THEN TRY_CAST(n AS TINYINT)::BIGINT
            WHEN 'smallint' THEN TRY_CAST(n AS SMALLINT)::BIGINT
            WHEN 'int' THEN TRY_CAST(n AS INTEGER)::BIGINT ELSE n END""",
        f"""spark_try_text_to_bigint(t, kind) AS spark_try_integer(
            CASE WHEN regexp_full_match(t, '{_SPACES}[+-]?[0-9]+{_SPACES}')
            THEN TRY_CAST(regexp_replace(t, '[\\x00-\\x20\\x7f]', '', 'g') AS BIGINT) END, kind)""",
        f"""spark_text_to_double(t) AS CASE WHEN t IS NULL THEN NULL
            WHEN regexp_full_match(t,
                '{_SPACES}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?{_SPACES}')
            THEN CAST(regexp_replace(t, '[\\x00-\\x20\\x7f]', '', 'g') AS DOUBLE)
            ELSE error('a text is no plain double: {_ENGINE}') END""",
        f"""spark_try_text_to_double(t) AS CASE WHEN t IS NULL THEN NULL
            WHEN regexp_full_match(t,
                '{_SPACES}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?{_SPACES}')
            THEN CAST(regexp_replace(t, '[\\x00-\\x20\\x7f]', '', 'g') AS DOUBLE)
            WHEN regexp_matches(t, '^{_SPACES}[+-]?[0-9.nNiI]')
            THEN error('a text that may be a double: {_ENGINE}') ELSE NULL END""",
        f"""spark_text_to_boolean(t) AS CASE WHEN t IS NULL THEN NULL
            WHEN regexp_full_match(t, '{_SPACES}(?i:t|true|y|yes|1){_SPACES}') THEN true
            WHEN regexp_full_match(t, '{_SPACES}(?i:f|false|n|no|0){_SPACES}') THEN false
            ELSE error('a text is no boolean') END""",
        f"""spark_try_text_to_boolean(t) AS CASE
            WHEN regexp_full_match(t, '{_SPACES}(?i:t|true|y|yes|1){_SPACES}') THEN true
            WHEN regexp_full_match(t, '{_SPACES}(?i:f|false|n|no|0){_SPACES}') THEN false
            ELSE NULL END""",
        f"""spark_text_to_timestamp(t) AS CASE WHEN t IS NULL THEN NULL
            WHEN regexp_full_match(t,
                '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T][0-9:]{{8}}([.][0-9]{{1,6}})?Z?)?')
            THEN CAST(rtrim(t, 'Z') || CASE WHEN length(t) = 10 THEN ' 00:00:00' ELSE '' END
                || '+00' AS TIMESTAMPTZ)
            ELSE error('a text is no plain timestamp: {_ENGINE}') END""",
        f"""spark_text_to_date(t) AS CASE WHEN t IS NULL THEN NULL
            WHEN regexp_full_match(t, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') THEN CAST(t AS DATE)
            ELSE error('a text is no plain date: {_ENGINE}') END""",
        # -- times
        "spark_naive(t) AS make_timestamp(epoch_us(t))",
        f"""spark_year_checked(t) AS CASE WHEN year(t) BETWEEN 1 AND 9999 OR t IS NULL THEN t
            ELSE error('a time outside the years 1 to 9999: {_ENGINE}') END""",
        """spark_timestamp_to_text(t) AS regexp_replace(
            strftime(spark_year_checked(spark_naive(t)), '%Y-%m-%d %H:%M:%S.%f'), '[.]?0*$', '')""",
        "spark_date_to_text(d) AS strftime(spark_year_checked(d), '%Y-%m-%d')",
        "spark_floor_div(a, b) AS (a // b) - CASE WHEN a % b < 0 THEN 1 ELSE 0 END",
        "spark_seconds(t) AS spark_floor_div(epoch_us(t), 1000000::BIGINT)",
        # Short numbers only: of longer ones Java releases print different digits.
        f"""spark_double_to_text(x) AS CASE WHEN x IS NULL THEN NULL
            WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN if(x > 0, 'Infinity', '-Infinity')
            WHEN (x = 0 OR abs(x) BETWEEN 0.001 AND 9999999)
                AND length(replace(ltrim(CAST(x AS VARCHAR), '-0.'), '.', '')) <= 15
                THEN CAST(x AS VARCHAR)
            ELSE error('a double with many digits as text: {_ENGINE}') END""",
        """spark_base64(b) AS array_to_string(regexp_extract_all(to_base64(b), '.{1,76}'),
            chr(13) || chr(10))""",
        *(
            f"""spark_{name}(x) AS CASE WHEN isnan(x) THEN 0::BIGINT
            WHEN x >= 9223372036854775807 THEN 9223372036854775807::BIGINT
            WHEN x <= -9223372036854775808 THEN (-9223372036854775808)::BIGINT
            ELSE CAST({name}(x) AS BIGINT) END"""
            for name in ("ceil", "floor")
        ),
        # -- arrays
        """spark_item(a, i) AS CASE WHEN a IS NULL OR i IS NULL THEN NULL
            WHEN i < 0 OR i >= len(a) THEN error('index ' || i || ' of an array of ' || len(a)
            || ' elements: get() gives NULL') ELSE list_extract(a, i + 1) END""",
        "spark_get(a, i) AS CASE WHEN i < 0 THEN NULL ELSE list_extract(a, i + 1) END",
        """spark_element_at(a, i) AS CASE WHEN a IS NULL OR i IS NULL THEN NULL
            WHEN i = 0 OR abs(i) > len(a) THEN error('element ' || i || ' of an array of ' || len(a)
            || ' elements: get() gives NULL') ELSE list_extract(a, i) END""",
        # -- texts: where Java changes one letter to several, or goes by its neighbours
        f"""spark_upper(t) AS CASE WHEN regexp_matches(t, '{_UPPER_DIFFERS}')
            THEN error('upper() of letters that Java changes otherwise: {_ENGINE}')
            ELSE upper(replace(t, 'ß', 'ss')) END""",
        f"""spark_lower(t) AS CASE WHEN regexp_matches(t, '{_LOWER_DIFFERS}')
            THEN error('lower() of letters that Java changes otherwise: {_ENGINE}')
            ELSE lower(t) END""",
        """spark_reverse(t) AS
            array_to_string(list_reverse(regexp_extract_all(t, '(?s).')), '')""",
        # As many characters as the first bytes of characters promise, which is how Spark counts.
        """spark_bytes_length(b) AS coalesce(length(try(decode(b))), len(regexp_extract_all(hex(b),
            'C[2-9A-F].{0,2}|D.{1,3}|E.{1,5}|F[0-4].{0,6}|..')))""",
        """spark_substring_from_end(t, start, n) AS
            CASE WHEN start + n <= 0 OR n <= 0 THEN substring(t, 1, 0)
            ELSE substring(t, greatest(start, 0) + 1, n + least(start, 0)) END""",
        """spark_substring(t, p, n) AS CASE WHEN p > 0 THEN substring(t, p, greatest(n, 0))
            WHEN p = 0 THEN substring(t, 1, greatest(n, 0))
            ELSE spark_substring_from_end(t, length(t) + p, n) END""",
        "spark_left(t, n) AS CASE WHEN n <= 0 AND t IS NOT NULL THEN '' ELSE left(t, n) END",
        "spark_right(t, n) AS CASE WHEN n <= 0 AND t IS NOT NULL THEN '' ELSE right(t, n) END",
        """spark_pad(t, n, p, side) AS CASE WHEN t IS NULL OR n IS NULL OR p IS NULL THEN NULL
            WHEN n <= 0 THEN '' WHEN p = '' OR length(t) >= n THEN left(t, n)
            WHEN side = 'left' THEN lpad(t, n, p) ELSE rpad(t, n, p) END""",
        "spark_repeat(t, n) AS CASE WHEN n IS NULL THEN NULL ELSE repeat(t, greatest(n, 0)) END",
        "spark_replace(t, a, b) AS CASE WHEN a = '' THEN t ELSE replace(t, a, b) END",
        f"""spark_json_found(j) AS CASE WHEN j IS NULL THEN NULL ELSE CASE json_type(j)
            WHEN 'VARCHAR' THEN j ->> '$' WHEN 'BIGINT' THEN j ->> '$' WHEN 'UBIGINT' THEN j ->> '$'
            WHEN 'BOOLEAN' THEN j ->> '$' WHEN 'NULL' THEN NULL
            WHEN 'DOUBLE' THEN spark_double_to_text(CAST(j ->> '$' AS DOUBLE))
            ELSE CASE WHEN regexp_matches(CAST(j AS VARCHAR), '[0-9][.eE]|[0-9]{{19}}')
                THEN error('get_json_object() of numbers with fractions in an object: {_ENGINE}')
                ELSE j ->> '$' END END END""",
        f"""spark_json_invalid(t) AS CASE
            WHEN NOT regexp_matches(t, '^[\\x00-\\x20]*[{{[]') THEN NULL
            WHEN NOT regexp_matches(t, '[]}}''\\x00-\\x1f]') THEN NULL
            ELSE error('get_json_object() of a text that is no JSON: {_ENGINE}') END""",
        """spark_json(t, path) AS CASE WHEN t IS NULL THEN NULL
            WHEN regexp_matches(t,
                ',[ \\t\\r\\n]*[]}]|[[:,{][ \\t\\r\\n]*[+-]?([nN][aA][nN]|[iI][nN][fF])')
            THEN spark_json_invalid(t)
            WHEN json_valid(t) AND NOT regexp_matches(t, '^[ \\t\\r\\n]*[^ \\t\\r\\n{[]')
            THEN spark_json_found(json_extract(t, path))
            ELSE spark_json_invalid(t) END""",
        # -- further numbers
        "spark_sqrt(x) AS CASE WHEN x < 0 THEN 'nan'::DOUBLE ELSE sqrt(x) END",
        "spark_sign(x) AS CASE WHEN isnan(x) THEN x ELSE sign(x)::DOUBLE END",
        """spark_pmod(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('division by zero')
            WHEN a % b < 0 THEN (a % b + b) % b ELSE a % b END""",
        *(
            f"""spark_round_{places}(x) AS CASE WHEN isnan(x) OR abs(x) >= 9007199254740992 THEN x
            WHEN abs(x) < 10000000000000 THEN CAST(CAST(CAST(CAST(CAST(x AS VARCHAR)
                AS DECIMAL(38, 24)) AS DECIMAL(38, {places})) AS VARCHAR) AS DOUBLE)
            ELSE CAST(CAST(CAST(CAST(CAST(x AS VARCHAR)
                AS DECIMAL(38, 16)) AS DECIMAL(38, {places})) AS VARCHAR) AS DOUBLE) END"""
            for places in range(7)
        ),
        """spark_array_contains(a, x) AS CASE WHEN a IS NULL OR x IS NULL THEN NULL
            WHEN list_contains(a, x) THEN true
            WHEN len(list_filter(a, lambda e: e IS NULL)) > 0 THEN NULL ELSE false END""",
    )
)
