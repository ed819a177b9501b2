package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Kafka's generated message classes: JSON to bytes, and which record types there are. */
final class MessageCmd {
    private static final ObjectMapper J = new ObjectMapper();

    private MessageCmd() { }

    /**
     * encode --cases-text LINES: each line a JSON array [class, version, {fields}]; per line the encoding in hex,
     * and the message as Kafka's own converter prints it after reading those bytes again.
     */
    static Object encode(Args a) throws Exception {
        List<Object> out = new ArrayList<>();
        for (String line : a.req("cases-text").split("\n")) {
            JsonNode c = J.readTree(line);
            short version = (short) c.get(1).asInt();
            Class<?> type = Class.forName(c.get(0).asText());
            Class<?> converter = Class.forName(c.get(0).asText() + "JsonConverter");
            Message message = (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, c.get(2), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            Message again = (Message) type.getDeclaredConstructor().newInstance();
            again.read(new ByteBufferAccessor(ByteBuffer.wrap(buffer.array())), version);
            Method write = converter.getMethod("write", type, short.class);
            Map<String, Object> m = new LinkedHashMap<>();
            m.put("bytes", HexFormat.of().formatHex(buffer.array()));
            m.put("json", write.invoke(null, again, version));
            out.add(m);
        }
        return Map.of("messages", out);
    }

    /** message-types --enum CLASS: name, id, lowest and highest version of each constant of a generated enum of record types. */
    static Object types(Args a) throws Exception {
        List<Object> out = new ArrayList<>();
        for (Object constant : Class.forName(a.req("enum")).getEnumConstants()) {
            Map<String, Object> m = new LinkedHashMap<>();
            m.put("name", ((Enum<?>) constant).name());
            for (String part : List.of("id", "lowestSupportedVersion", "highestSupportedVersion"))
                m.put(part, constant.getClass().getMethod(part).invoke(constant));
            out.add(m);
        }
        return Map.of("types", out);
    }
}
