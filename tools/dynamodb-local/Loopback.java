import java.net.InetSocketAddress;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.ContextHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBRequestHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBServerHandler;

/**
 * Runs DynamoDB Local in memory on a free port of the loopback address. DynamoDB Local's own main class can't do that: it
 * listens on every address and needs a fixed port. Prints the URL when the server is ready. Exits when the parent process
 * ends for any reason.
 */
public class Loopback {
    public static void main(String[] args) throws Exception {
        boolean inMemory = true, sharedDb = true, delayTransientStatuses = false;
        String dbPath = null, corsOrigin = null;
        var requests = new LocalDynamoDBRequestHandler(0, inMemory, dbPath, sharedDb, delayTransientStatuses);

        var server = new Server(new InetSocketAddress("127.0.0.1", 0));
        server.setHandler(new ContextHandler(new LocalDynamoDBServerHandler(requests, corsOrigin)));
        server.start();
        System.out.println("http://127.0.0.1:" + server.getURI().getPort());

        ProcessHandle.current().parent().ifPresent(p -> p.onExit().thenRun(() -> System.exit(0)));
        server.join();
    }
}
