package oracle;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** bench-many: all partitions below a log dir, open as a broker has them, cleaned by a few threads that share the memory of the key maps. */
final class BenchManyCmd {

    static Object run(Args a) throws Exception {
        File base = new File(a.req("log-dir")).getAbsoluteFile();
        LogConfig cfg = Logs.config(a);
        int threads = (int) a.num("threads", 1);
        // log.cleaner.dedupe.buffer.size is for all threads together
        int mapBytes = (int) (a.num("map-bytes", 128 << 20) / threads);
        ManualTime time = new ManualTime(a.num("now", 1_700_000_000_000L));
        ManualScheduler sch = new ManualScheduler(time);
        List<UnifiedLog> logs = new ArrayList<>();
        for (File dir : base.listFiles(File::isDirectory)) {
            UnifiedLog log = Logs.open(dir, cfg, a, sch, time, true, Logs.checkpoint(base, Logs.RECOVERY, UnifiedLog.parseTopicPartitionName(dir)).orElse(0L));
            Logs.setHw(log, a);
            logs.add(log);
        }
        com.sun.management.OperatingSystemMXBean os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu0 = os.getProcessCpuTime(), w0 = System.nanoTime();
        AtomicInteger next = new AtomicInteger();
        AtomicLong read = new AtomicLong(), written = new AtomicLong(), cleaned = new AtomicLong();
        List<Throwable> errors = Collections.synchronizedList(new ArrayList<>());
        List<Thread> running = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            final int id = t;
            Thread thread = new Thread(() -> {
                try {
                    Cleaner cleaner = CleanCmd.newCleaner(id, new SkimpyOffsetMap(mapBytes), a, Time.SYSTEM);
                    for (int i = next.getAndIncrement(); i < logs.size(); i = next.getAndIncrement()) {
                        UnifiedLog log = logs.get(i);
                        long[] offsets = CleanCmd.cleanableOffsets(log, Optional.empty(), time.milliseconds());
                        LogToClean toClean = CleanCmd.toClean(log, offsets[0], offsets[1], false);
                        if (toClean.cleanableBytes() == 0) continue;
                        Map.Entry<Long, CleanerStats> done = cleaner.doClean(toClean, time.milliseconds());
                        Logs.setCheckpoint(base, Logs.CLEANER, log.topicPartition(), done.getKey());
                        Map<String, Object> stats = CleanCmd.stats(done.getValue());
                        read.addAndGet((Long) stats.get("bytesRead"));
                        written.addAndGet((Long) stats.get("bytesWritten"));
                        cleaned.incrementAndGet();
                    }
                } catch (Throwable e) { errors.add(e); }
            });
            running.add(thread);
            thread.start();
        }
        for (Thread thread : running) thread.join();
        double seconds = (System.nanoTime() - w0) / 1e9, cpu = (os.getProcessCpuTime() - cpu0) / 1e9;
        if (!errors.isEmpty()) throw new RuntimeException(errors.get(0));
        for (UnifiedLog log : logs) Logs.close(log, sch);
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("cmd", "bench-many"); out.put("partitions", cleaned.get()); out.put("seconds", seconds); out.put("cpuSeconds", cpu);
        out.put("bytesRead", read.get()); out.put("bytesWritten", written.get());
        return out;
    }
}
