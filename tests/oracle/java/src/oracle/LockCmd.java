package oracle;

import java.io.File;
import java.util.Map;
import org.apache.kafka.server.util.FileLock;

/** lock, unlock: hold the .lock of a log dir with the class a broker holds it with. */
final class LockCmd {
    private static FileLock held;

    static Object lock(Args a) throws Exception {
        FileLock lock = new FileLock(new File(a.req("log-dir"), ".lock"));
        boolean taken = lock.tryLock();
        if (taken) held = lock; else lock.unlockAndClose();
        return Map.of("cmd", "lock", "taken", taken);
    }

    static Object unlock() throws Exception {
        if (held != null) held.unlockAndClose();
        held = null;
        return Map.of("cmd", "unlock");
    }
}
