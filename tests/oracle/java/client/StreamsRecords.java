import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.Stores;

/** Runs an application of Kafka Streams against a broker and prints the records of its changelogs and repartition topics: a
 * line each of topic, timestamp, key and value, bytes in hexadecimal, "-" for null. */
public class StreamsRecords {
    private static final String APPLICATION = "shop-app";
    private static final String CHANGELOG = "-changelog";
    private static final List<String> SOURCES = List.of("orders", "orders-table", "rates");
    private static final long START = 1767225600000L;
    // Key, value, seconds after START.
    private static final Object[][] ORDERS = {
        {"anna", "5", 0}, {"bertil", "7", 10}, {"anna", "2", 20}, {"é", "1", 65}, {"anna", "3", 70}, {"bertil", null, 80},
        {"anna", "4", 15}, {"anna", "9", 400},
    };
    private static final Object[][] RATES = {{"5", "five", 0}, {"7", "seven", 5}, {"2", "two", 10}, {"5", null, 20}};

    public static void main(String[] args) throws Exception {
        Map<String, Object> servers = Map.of("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(servers)) {
            List<NewTopic> topics = new ArrayList<>();
            for (String name : SOURCES) {
                topics.add(new NewTopic(name, 1, (short) 1));
            }
            admin.createTopics(topics).all().get();
            send(servers, "rates", RATES);
            send(servers, "orders", ORDERS);
            send(servers, "orders-table", ORDERS);
            run(args[0], admin);
            print(servers, admin);
        }
    }

    private static void topology(StreamsBuilder builder) {
        KStream<String, String> orders = builder.stream("orders", Consumed.with(Serdes.String(), Serdes.String()));
        KTable<String, String> rates = builder.table("rates", Consumed.with(Serdes.String(), Serdes.String()),
            Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("rate-versions", Duration.ofDays(1))));
        KGroupedStream<String, String> byKey = orders.groupByKey();
        byKey.count(Materialized.as("counts"));
        byKey.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(60), Duration.ofHours(1))).count(Materialized.as("per-minute"));
        byKey.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(30), Duration.ofHours(1))).count(Materialized.as("visits"));
        byKey.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(60))).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream();
        byKey.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(60))).emitStrategy(EmitStrategy.onWindowClose())
            .count(Materialized.as("closed"));
        // Generated names: a repartition topic and a key-value store.
        orders.filter((key, value) -> value != null).map((key, value) -> KeyValue.pair(value, key))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String())).reduce((one, other) -> other);
        orders.repartition(Repartitioned.<String, String>as("by-customer").withNumberOfPartitions(1));
        // Windows of a join, with sequence numbers, and what an outer join keeps.
        orders.leftJoin(orders.mapValues(value -> value), (one, other) -> one + other,
            JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(5)), StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()));
        KTable<String, String> latest = builder.table("orders-table", Consumed.with(Serdes.String(), Serdes.String()));
        latest.join(rates.toStream().toTable(), value -> value, (one, other) -> one + other);
    }

    private static void run(String servers, Admin admin) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        topology(builder);
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("streams").toString());
        properties.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, Duration.ofHours(1).toMillis());
        properties.put("auto.offset.reset", "earliest");
        // In the order of their timestamps, as far as there is one.
        properties.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, 1000);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
            streams.setUncaughtExceptionHandler(error -> {
                error.printStackTrace();
                return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            awaitDone(admin);
        }
    }

    /** Until all that goes into the application was processed and committed. */
    private static void awaitDone(Admin admin) throws Exception {
        while (true) {
            Map<TopicPartition, Long> wanted = ends(admin, topic -> SOURCES.contains(topic)
                || topic.startsWith(APPLICATION + "-") && !topic.endsWith(CHANGELOG));
            Map<TopicPartition, OffsetAndMetadata> done =
                admin.listConsumerGroupOffsets(APPLICATION).partitionsToOffsetAndMetadata().get();
            boolean isDone = wanted.size() > SOURCES.size();
            for (TopicPartition partition : wanted.keySet()) {
                OffsetAndMetadata committed = done.get(partition);
                isDone &= committed != null && committed.offset() == wanted.get(partition);
            }
            if (isDone) {
                return;
            }
            Thread.sleep(250);
        }
    }

    private static Map<TopicPartition, Long> ends(Admin admin, Predicate<String> topics) throws ExecutionException, InterruptedException {
        Map<TopicPartition, OffsetSpec> asked = new TreeMap<>((one, other) -> one.toString().compareTo(other.toString()));
        for (String topic : admin.listTopics().names().get()) {
            if (topics.test(topic)) {
                asked.put(new TopicPartition(topic, 0), OffsetSpec.latest());
            }
        }
        Map<TopicPartition, Long> found = new TreeMap<>((one, other) -> one.toString().compareTo(other.toString()));
        admin.listOffsets(asked).all().get().forEach((partition, info) -> found.put(partition, info.offset()));
        return found;
    }

    private static void send(Map<String, Object> servers, String topic, Object[][] records) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(servers, new StringSerializer(), new StringSerializer())) {
            for (Object[] each : records) {
                long timestamp = START + 1000L * (Integer) each[2];
                producer.send(new ProducerRecord<>(topic, 0, timestamp, (String) each[0], (String) each[1])).get();
            }
        }
    }

    private static void print(Map<String, Object> servers, Admin admin) throws Exception {
        Map<TopicPartition, Long> ends = ends(admin, topic -> topic.endsWith(CHANGELOG) || topic.endsWith("-repartition"));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(servers, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (TopicPartition partition : ends.keySet()) {
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                while (consumer.position(partition) < ends.get(partition)) {
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofSeconds(1))) {
                        System.out.println(String.join(" ", each.topic(), Long.toString(each.timestamp()), hex(each.key()),
                            hex(each.value())));
                    }
                }
            }
        }
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : HexFormat.of().formatHex(bytes);
    }
}
