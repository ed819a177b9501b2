package oracle;

import java.io.FileReader;
import java.io.Reader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.zip.CRC32;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;

/**
 * start: a whole node (kafka.server.KafkaRaftServer, what kafka.Kafka runs) on the log dirs of a properties file, in this
 * process: built, started, looked at, stopped. What ends kafka.Kafka is noted instead: an exception out of the constructor or of
 * startup(), Exit.halt and Exit.exit of any of its threads. A node that cannot be stopped is "dirty": it asks for a new process.
 *
 * The answer: outcome (started, failed, hung), error, the lines logged as warnings or worse, and of a node that started
 * each loaded log (offsets, records, a checksum over offsets, keys and values, leader epochs), the records of the metadata log,
 * the offline log dirs, the topics and settings of the metadata, and the groups' committed offsets.
 */
final class StartCmd {
    private static final Capture CAPTURE = new Capture();
    private static volatile String ended;
    /** Threads of a node that was given up may go on; what they do is nobody's business any more. */
    private static volatile ThreadGroup current;

    static Object start(Args a) throws Exception {
        install();
        CAPTURE.lines.clear();
        ended = null;
        Properties properties = new Properties();
        try (Reader in = new FileReader(a.req("properties"))) { properties.load(in); }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("cmd", "start");
        Object[] server = new Object[1];
        CompletableFuture<Void> done = new CompletableFuture<>();
        ThreadGroup group = current = new ThreadGroup("node");
        Thread starter = new Thread(group, () -> {
            try {
                KafkaRaftServer built = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM);
                server[0] = built;
                built.startup();
                done.complete(null);
            } catch (Throwable t) { done.completeExceptionally(t); }
        }, "starter");
        starter.setDaemon(true);
        starter.start();
        long deadline = System.currentTimeMillis() + a.num("timeout-ms", 30_000);
        String outcome = "hung", error = null;
        while (System.currentTimeMillis() < deadline && ended == null) {
            try { done.get(20, TimeUnit.MILLISECONDS); outcome = "started"; break; }
            catch (TimeoutException e) { /* not yet */ }
            catch (Exception e) { outcome = "failed"; error = root(e); break; }
        }
        if (outcome.equals("started")) {
            long until = System.currentTimeMillis() + a.num("settle-ms", 300);
            while (System.currentTimeMillis() < until && ended == null) Thread.sleep(10);
        }
        if (ended != null) { outcome = "failed"; error = ended; }
        if (outcome.equals("started")) {
            describe(server[0], properties, out);
            if (ended != null) { outcome = "failed"; error = ended; }
        }
        boolean dirty = outcome.equals("hung");
        if (server[0] != null && !dirty) {
            Thread stopper = new Thread(group, ((KafkaRaftServer) server[0])::shutdown, "stopper");
            stopper.setDaemon(true);
            stopper.start();
            stopper.join(10_000);
            dirty = stopper.isAlive();
        }
        out.put("outcome", outcome); out.put("reason", error); out.put("dirty", dirty);
        synchronized (CAPTURE.lines) { out.put("log", new ArrayList<>(CAPTURE.lines)); }
        return out;
    }

    private static String root(Throwable t) {
        while (t.getCause() != null) t = t.getCause();
        return t.toString();
    }

    private static synchronized void install() {
        if (CAPTURE.isStarted()) return;
        Exit.setHaltProcedure((code, message) -> end("halt " + code, message));
        Exit.setExitProcedure((code, message) -> end("exit " + code, message));
        CAPTURE.start();
        LoggerContext context = (LoggerContext) LogManager.getContext(false);
        context.getConfiguration().getRootLogger().addAppender(CAPTURE, Level.INFO, null);
        context.updateLoggers();
    }

    private static void end(String how, String message) {
        boolean mine = current.parentOf(Thread.currentThread().getThreadGroup());
        if (mine && ended == null) ended = message == null ? how : how + ": " + message;
        throw new Error(how);
    }

    // -- what a started node has ------------------------------------------------------------------

    private static void describe(Object server, Properties properties, Map<String, Object> out) throws Exception {
        Object broker = call(Logs.field(server, "broker"), "get");
        Object logManager = call(broker, "logManager");
        Map<String, Object> logs = new TreeMap<>();
        for (Object log : toJava(call(logManager, "allLogs"))) logs.put(((UnifiedLog) log).topicPartition().toString(), log((UnifiedLog) log));
        out.put("logs", logs);
        out.put("metadataLog", metadataLog(call(call(Logs.field(server, "sharedServer"), "raftManager"), "raftLog")));
        List<String> live = new ArrayList<>();
        for (Object dir : toJava(call(logManager, "liveLogDirs"))) live.add(dir.toString());
        out.put("liveLogDirs", live);
        Object cleaner = call(logManager, "cleaner");
        out.put("deadCleaners", cleaner == null ? 0 : call(cleaner, "deadThreadCount"));
        out.put("leaderless", leaderless(call(broker, "metadataCache")));
        Object image = call(call(broker, "metadataCache"), "currentImage");
        Map<?, ?> byName = (Map<?, ?>) call(call(image, "topics"), "topicsByName");
        List<String> topics = new ArrayList<>();
        for (Object name : byName.keySet()) topics.add(name.toString());
        topics.sort(null);
        out.put("topics", topics);
        Map<String, String> configs = new TreeMap<>();
        ((Map<?, ?>) call(call(image, "configs"), "resourceData")).forEach((k, v) -> {
            try { configs.put(k.toString(), new TreeMap<>((Map<?, ?>) call(v, "toMap")).toString()); }
            catch (Exception e) { configs.put(k.toString(), v.toString()); }
        });
        out.put("configs", configs);
        out.put("features", call(image, "features").toString());
        out.put("groups", groups(properties.getProperty("listeners").split(",")[0].replaceAll(".*//", "")));
    }

    /** Partitions that have no leader, and do not get one soon. */
    private static List<String> leaderless(Object cache) throws Exception {
        List<String> found = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            found.clear();
            for (Object topic : ((Map<?, ?>) call(call(call(cache, "currentImage"), "topics"), "topicsByName")).values())
                for (Map.Entry<?, ?> p : ((Map<?, ?>) call(topic, "partitions")).entrySet())
                    if ((Integer) Logs.field(p.getValue(), "leader") < 0) found.add(call(topic, "name") + "-" + p.getKey());
            if (found.isEmpty()) break;
            Thread.sleep(25);
        }
        found.sort(null);
        return found;
    }

    private static Map<String, Object> log(UnifiedLog log) {
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("dir", log.dir().getPath());
        m.put("start", log.logStartOffset()); m.put("end", log.logEndOffset());
        m.put("stable", log.lastStableOffset()); m.put("highWatermark", log.highWatermark());
        m.put("producers", log.activeProducersWithLastSequence().size());
        List<Object> epochs = new ArrayList<>();
        log.leaderEpochCache().epochEntries().forEach(e -> epochs.add(List.of(Logs.field(e, "epoch"), Logs.field(e, "startOffset"))));
        m.put("epochs", epochs);
        long records = 0, at = log.logStartOffset(), aborted = 0;
        CRC32 crc = new CRC32();
        try {
            while (at < log.logEndOffset()) {
                // batch by batch, as a consumer that may begin anywhere: a read finds its segment by the offset
                FetchDataInfo data = log.read(at, 1, FetchIsolation.LOG_END, true);
                long before = at;
                for (RecordBatch b : asConsumed(data).batches()) {
                    b.ensureValid();
                    for (Record r : b) {
                        if (r.offset() < at) continue;
                        records++;
                        crc.update((r.offset() + " ").getBytes());
                        if (r.hasKey()) crc.update(r.key().duplicate());
                        if (r.hasValue()) crc.update(r.value().duplicate());
                    }
                    at = Math.max(at, b.nextOffset());
                }
                if (at == before) { m.put("readError", "no batch at " + at); break; }
            }
            FetchDataInfo committed = log.read(log.logStartOffset(), Integer.MAX_VALUE, FetchIsolation.TXN_COMMITTED, true);
            aborted = committed.abortedTransactions.orElse(List.of()).size();
        } catch (Throwable t) { m.put("readError", t.toString() + " at " + at); }
        List<Object> times = new ArrayList<>();
        for (LogSegment s : log.logSegments()) {
            try { times.add(List.of(s.baseOffset(), s.largestTimestamp())); } catch (Exception e) { times.add(List.of(s.baseOffset(), e.toString())); }
        }
        m.put("times", times);
        if (!log.topicPartition().topic().startsWith("__")) m.put("append", append(log));
        m.put("records", records); m.put("checksum", crc.getValue()); m.put("aborted", aborted);
        return m;
    }

    /**
     * Where the newest snapshot ends, and [offset, checksum] of each record that a reader of the quorum comes to, those that the
     * node has written itself by now among them; the offsets of control records once more.
     */
    private static Map<String, Object> metadataLog(Object raftLog) throws Exception {
        UnifiedLog log = (UnifiedLog) Logs.field(raftLog, "log");
        Map<String, Object> m = new LinkedHashMap<>();
        Object snapshot = ((java.util.Optional<?>) call(raftLog, "latestSnapshotId")).orElse(null);
        m.put("snapshotEnd", snapshot == null ? 0 : call(snapshot, "offset"));
        List<Object> records = new ArrayList<>(), control = new ArrayList<>();
        long at = log.logStartOffset(), end = log.logEndOffset();
        while (at < end) {
            long before = at;
            for (RecordBatch b : asConsumed(log.read(at, 1, FetchIsolation.LOG_END, true)).batches()) {
                for (Record r : b) {
                    if (r.offset() < at) continue;
                    CRC32 crc = new CRC32();
                    if (r.hasKey()) crc.update(r.key().duplicate());
                    if (r.hasValue()) crc.update(r.value().duplicate());
                    records.add(List.of(r.offset(), crc.getValue()));
                    if (b.isControlBatch()) control.add(r.offset());
                }
                at = Math.max(at, b.nextOffset());
            }
            if (at == before) break;
        }
        m.put("records", records); m.put("control", control);
        return m;
    }

    /** The batches as a consumer finds them in the bytes of a fetch. */
    private static MemoryRecords asConsumed(FetchDataInfo data) throws Exception {
        if (data.records instanceof MemoryRecords) return (MemoryRecords) data.records;
        ByteBuffer bytes = ByteBuffer.allocate(data.records.sizeInBytes());
        ((FileRecords) data.records).readInto(bytes, 0);
        return MemoryRecords.readableRecords(bytes);
    }

    /** Whether a record that is appended now can be read. */
    private static String append(UnifiedLog log) {
        try {
            long at = log.logEndOffset();
            int epoch = log.latestEpoch().orElse(0);
            MemoryRecords record = MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(System.currentTimeMillis(), "key".getBytes(), "value".getBytes()));
            log.appendAsLeader(record, epoch);
            for (RecordBatch b : asConsumed(log.read(at, 1, FetchIsolation.LOG_END, true)).batches()) if (b.lastOffset() >= at) return "read";
            return "not found";
        } catch (Throwable t) { return root(t); }
    }

    private static Object groups(String bootstrap) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("default.api.timeout.ms", "4000"); p.put("request.timeout.ms", "3000"); p.put("retry.backoff.ms", "20");
        try (Admin admin = Admin.create(p)) {
            Map<String, Object> found = new TreeMap<>();
            List<String> ids = new ArrayList<>();
            admin.listGroups().all().get().forEach(g -> ids.add(g.groupId()));
            for (String id : ids) {
                Map<String, Long> offsets = new TreeMap<>();
                try {
                    Map<TopicPartition, OffsetAndMetadata> got = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get();
                    got.forEach((tp, o) -> { if (o != null) offsets.put(tp.toString(), o.offset()); });
                    found.put(id, offsets);
                } catch (Exception e) { found.put(id, root(e)); }
            }
            return found;
        } catch (Exception e) { return root(e); }
    }

    // -- small things -----------------------------------------------------------------------------

    private static Object call(Object o, String name) throws Exception {
        for (Class<?> c = o.getClass(); c != null; c = c.getSuperclass())
            for (Method x : c.getDeclaredMethods())
                if (x.getName().equals(name) && x.getParameterCount() == 0) { x.setAccessible(true); return x.invoke(o); }
        throw new NoSuchMethodException(o.getClass() + "." + name);
    }

    private static Collection<?> toJava(Object o) {
        if (o instanceof Collection) return (Collection<?>) o;
        List<Object> all = new ArrayList<>();
        ((scala.collection.Iterable<?>) o).foreach(x -> { all.add(x); return null; });
        return all;
    }

    private static final class Capture extends AbstractAppender {
        final List<String> lines = java.util.Collections.synchronizedList(new ArrayList<>());
        Capture() { super("capture", null, null, true, Property.EMPTY_ARRAY); }
        @Override public void append(LogEvent e) {
            // A node that was given up misses its files.
            if (current == null || !current.parentOf(Thread.currentThread().getThreadGroup())) return;
            String text = e.getMessage().getFormattedMessage();
            boolean bad = e.getLevel().isMoreSpecificThan(Level.WARN);
            if (!bad && !text.matches("(?s).*(stray|runcat|elet|recover|Recover|rebuil|ebuild).*")) return;
            if (lines.size() >= 2000) return;
            Throwable t = e.getThrown();
            String line = e.getLevel() + " " + text + (t == null ? "" : " | " + t + " | " + root(t));
            lines.add(line.length() > 600 ? line.substring(0, 600) : line);
        }
    }
}
