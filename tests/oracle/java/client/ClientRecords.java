import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.runtime.AbstractStatus;
import org.apache.kafka.connect.runtime.ConnectorStatus;
import org.apache.kafka.connect.runtime.TaskStatus;
import org.apache.kafka.connect.runtime.TopicStatus;
import org.apache.kafka.connect.storage.KafkaConfigBackingStore;
import org.apache.kafka.connect.storage.KafkaStatusBackingStore;
import org.apache.kafka.connect.storage.MemoryOffsetBackingStore;
import org.apache.kafka.connect.storage.OffsetStorageWriter;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Records of the topics of Kafka Connect and MirrorMaker 2, as Kafka's own classes write them: a
 * line each of topic, key and value, in hexadecimal, "-" for null. */
public class ClientRecords {
    private static final JsonConverter CONVERTER = new JsonConverter();

    public static void main(String[] args) throws Exception {
        CONVERTER.configure(Map.of("schemas.enable", "false"), false);
        mirror();
        configs();
        statuses();
        offsets();
    }

    private static void mirror() throws Exception {
        String checkpoints = "us.checkpoints.internal";
        write(checkpoints, new Checkpoint("billing", new TopicPartition("us.orders", 3), 1234567890123L, 42L, "é"));
        write(checkpoints, new Checkpoint("", new TopicPartition("us.orders", 0), 0L, 0L, ""));
        byte[] key = (byte[]) call(new Checkpoint("billing", new TopicPartition("us.orders", 3), 0, 0, ""), "recordKey");
        print(checkpoints, key, null);
        write("heartbeats", new Heartbeat("us", "eu", 1767225600000L));
        write("us.heartbeats", new Heartbeat("asia", "us", 1767225601000L));
        write("mm2-offset-syncs.eu.internal", new OffsetSync(new TopicPartition("orders", 3), 100L, 97L));
        write("mm2-offset-syncs.eu.internal", new OffsetSync(new TopicPartition("orders", 3), -1L, -1L));
    }

    private static void configs() {
        Map<String, String> config = new LinkedHashMap<>();
        config.put("connector.class", "org.example.JdbcSink");
        config.put("connection.password", "hunter2");
        config.put("topics", "orders");
        put(KafkaConfigBackingStore.CONNECTOR_KEY("jdbc-1"), KafkaConfigBackingStore.CONNECTOR_CONFIGURATION_V0, Map.of("properties", config));
        put(KafkaConfigBackingStore.TASK_KEY(new ConnectorTaskId("jdbc-1", 0)), KafkaConfigBackingStore.TASK_CONFIGURATION_V0, Map.of("properties", config));
        put(KafkaConfigBackingStore.COMMIT_TASKS_KEY("jdbc-1"), KafkaConfigBackingStore.CONNECTOR_TASKS_COMMIT_V0, Map.of("tasks", 1));
        put(KafkaConfigBackingStore.TARGET_STATE_KEY("jdbc-1"), KafkaConfigBackingStore.TARGET_STATE_V1, Map.of("state", "PAUSED", "state.v2", "STOPPED"));
        put(KafkaConfigBackingStore.TASK_COUNT_RECORD_KEY("jdbc-1"), KafkaConfigBackingStore.TASK_COUNT_RECORD_V0, Map.of("task-count", 2));
        put(KafkaConfigBackingStore.SESSION_KEY_KEY, KafkaConfigBackingStore.SESSION_KEY_V0,
            Map.of("key", "c2Vzc2lvbiBzZWNyZXQ=", "algorithm", "HmacSHA256", "creation-timestamp", 1767225600000L));
        put(KafkaConfigBackingStore.RESTART_KEY("jdbc-1"), KafkaConfigBackingStore.RESTART_REQUEST_V0, Map.of("only-failed", true, "include-tasks", false));
        put(KafkaConfigBackingStore.LOGGER_CLUSTER_KEY("org.example"), KafkaConfigBackingStore.LOGGER_LEVEL_V0, Map.of("level", "DEBUG"));
        print("connect-configs", utf8(KafkaConfigBackingStore.CONNECTOR_KEY("jdbc-1")), null);
    }

    private static void put(String key, Schema schema, Map<String, ?> fields) {
        Struct struct = new Struct(schema);
        fields.forEach(struct::put);
        print("connect-configs", utf8(key), CONVERTER.fromConnectData("connect-configs", schema, struct));
    }

    private static void statuses() throws Exception {
        KafkaStatusBackingStore store = new KafkaStatusBackingStore(Time.SYSTEM, CONVERTER, () -> null, "client");
        Method serialize = KafkaStatusBackingStore.class.getDeclaredMethod("serialize", AbstractStatus.class);
        serialize.setAccessible(true);
        String topic = "connect-status";
        AbstractStatus<?> connector = new ConnectorStatus("jdbc-1", AbstractStatus.State.RUNNING, "10.0.0.1:8083", 7, "1.2");
        print(topic, utf8("status-connector-jdbc-1"), (byte[]) serialize.invoke(store, connector));
        AbstractStatus<?> task = new TaskStatus(new ConnectorTaskId("jdbc-1", 2), AbstractStatus.State.FAILED, "10.0.0.1:8083", 7, "java.lang.Exception: no", "1.2");
        print(topic, utf8("status-task-jdbc-1-2"), (byte[]) serialize.invoke(store, task));
        Method topicStatus = KafkaStatusBackingStore.class.getDeclaredMethod("serializeTopicStatus", TopicStatus.class);
        topicStatus.setAccessible(true);
        TopicStatus active = new TopicStatus("orders", "jdbc-1", 2, 1767225600000L);
        print(topic, utf8("status-topic-orders:connector-jdbc-1"), (byte[]) topicStatus.invoke(store, active));
        print(topic, utf8("status-task-jdbc-1-2"), null);
    }

    private static void offsets() throws Exception {
        MemoryOffsetBackingStore store = new MemoryOffsetBackingStore() {
            @Override
            public Set<Map<String, Object>> connectorPartitions(String connector) {
                return Set.of();
            }

            @Override
            protected void save() {
                data.forEach((key, value) -> print("connect-offsets", bytes(key), bytes(value)));
                data.clear();
            }
        };
        store.start();
        OffsetStorageWriter writer = new OffsetStorageWriter(store, "file-source", CONVERTER, CONVERTER);
        flush(writer, Map.of("filename", "/data/é.txt"), Map.of("position", 9007199254740993L));
        flush(writer, Map.of("filename", "/data/é.txt"), null);
        store.stop();
    }

    private static void flush(OffsetStorageWriter writer, Map<String, ?> partition, Map<String, ?> offset) throws Exception {
        writer.offset(partition, offset);
        writer.beginFlush();
        writer.doFlush((error, result) -> { }).get();
    }

    private static void write(String topic, Object record) throws Exception {
        print(topic, (byte[]) call(record, "recordKey"), (byte[]) call(record, "recordValue"));
    }

    private static Object call(Object record, String name) throws Exception {
        Method method = record.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(record);
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] bytes(ByteBuffer buffer) {
        return buffer == null ? null : buffer.array();
    }

    private static void print(String topic, byte[] key, byte[] value) {
        System.out.println(String.join(" ", List.of(topic, hex(key), hex(value))));
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}
