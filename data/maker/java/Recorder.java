import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

/**
 * What a client of a live ZooKeeper sees, as JSON lines on stdout: each event of a recursive watch on
 * the root with the zxid that caused it, each value that was read after one, and the whole tree when
 * asked. Requests are lines on stdin:
 *
 *   tree | create PATH TEXT | container PATH | ttl PATH TEXT | ephemeral PATH TEXT | set PATH TEXT |
 *   delete PATH | fail PATH | quit
 */
public final class Recorder {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final ZooKeeper client;

    private Recorder(ZooKeeper client) {
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(arguments[0], 30000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        Recorder recorder = new Recorder(client);
        client.addWatch("/", recorder::seen, AddWatchMode.PERSISTENT_RECURSIVE);
        say("ready", "sessionId", client.getSessionId());
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null && !line.equals("quit");
             line = requests.readLine()) {
            recorder.serve(line.split(" ", 3));
        }
        client.close();
    }

    private void serve(String[] request) throws Exception {
        String text = request.length > 2 ? request[2] : null;
        byte[] data = text == null ? null : text.getBytes(StandardCharsets.UTF_8);
        switch (request[0]) {
            case "tree" -> tree();
            case "create" -> create(request[1], data, CreateMode.PERSISTENT);
            case "container" -> create(request[1], data, CreateMode.CONTAINER);
            case "ttl" -> client.create(request[1], data, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                CreateMode.PERSISTENT_WITH_TTL, new Stat(), 86_400_000L);
            case "ephemeral" -> create(request[1], data, CreateMode.EPHEMERAL);
            case "set" -> client.setData(request[1], data, -1);
            case "delete" -> client.delete(request[1], -1);
            case "fail" -> {
                try {
                    client.delete(request[1], -1);
                } catch (KeeperException expected) {
                    say("failed", "code", expected.code().intValue());
                }
            }
            default -> throw new IllegalArgumentException(request[0]);
        }
        say("done", "request", request[0]);
    }

    private void create(String path, byte[] data, CreateMode mode) throws Exception {
        client.create(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE, mode);
    }

    private void seen(WatchedEvent event) {
        if (event.getType() == Watcher.Event.EventType.None) {
            return;
        }
        String path = event.getPath();
        say("event", "type", event.getType().name(), "path", path, "zxid", event.getZxid());
        if (event.getType() != Watcher.Event.EventType.NodeDeleted) {
            client.getData(path, false, (code, name, context, data, stat) -> {
                if (code == 0) {
                    say("value", "path", name, "data", text(data), "stat", shown(stat));
                }
            }, null);
        }
    }

    /** The tree as it is while nothing else writes: one that moved meanwhile is read anew. */
    private void tree() throws Exception {
        while (true) {
            client.sync("/", null, null);
            long before = client.exists("/zookeeper", false) == null ? -1 : lastZxid();
            Map<String, Object> nodes = new LinkedHashMap<>();
            ArrayDeque<String> rest = new ArrayDeque<>(List.of("/"));
            try {
                while (!rest.isEmpty()) {
                    String path = rest.removeFirst();
                    Stat stat = new Stat();
                    byte[] data = client.getData(path, false, stat);
                    List<String> acls = new ArrayList<>();
                    for (ACL acl : client.getACL(path, new Stat())) {
                        acls.add(acl.getPerms() + " " + acl.getId().getScheme() + " " + acl.getId().getId());
                    }
                    nodes.put(path, fields("data", text(data), "stat", shown(stat), "acl", acls));
                    for (String child : client.getChildren(path, false)) {
                        rest.add(path.equals("/") ? "/" + child : path + "/" + child);
                    }
                }
            } catch (KeeperException.NoNodeException gone) {
                continue;
            }
            if (before == lastZxid()) {
                say("tree", "zxid", before, "nodes", nodes);
                return;
            }
        }
    }

    /** What the server had done last when it answered: the answer's header has it, no method does. */
    private long lastZxid() throws Exception {
        client.exists("/", false);
        java.lang.reflect.Field cnxn = ZooKeeper.class.getDeclaredField("cnxn");
        cnxn.setAccessible(true);
        java.lang.reflect.Field zxid = cnxn.get(client).getClass().getDeclaredField("lastZxid");
        zxid.setAccessible(true);
        return zxid.getLong(cnxn.get(client));
    }

    private static String text(byte[] data) {
        return data == null ? null : new String(data, StandardCharsets.UTF_8);
    }

    private static Map<String, Object> shown(Stat stat) {
        return fields(
            "czxid", stat.getCzxid(), "mzxid", stat.getMzxid(), "ctimeMs", stat.getCtime(),
            "mtimeMs", stat.getMtime(), "version", stat.getVersion(), "cversion", stat.getCversion(),
            "aversion", stat.getAversion(), "owner", stat.getEphemeralOwner(),
            "pzxid", stat.getPzxid(), "children", stat.getNumChildren());
    }

    private static Map<String, Object> fields(Object... pairs) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            fields.put((String) pairs[i], pairs[i + 1]);
        }
        return fields;
    }

    private static synchronized void say(String what, Object... pairs) {
        Map<String, Object> line = fields("what", what, "timeMs", System.currentTimeMillis());
        line.putAll(fields(pairs));
        try {
            OUT.println(JSON.writeValueAsString(line));
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }
}
