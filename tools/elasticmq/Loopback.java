import java.io.PrintStream;
import org.elasticmq.rest.sqs.SQSRestServerBuilder;

/**
 * Runs ElasticMQ in memory on a free port of the loopback address. Prints the URL when the server is ready. Exits when the
 * parent process ends for any reason.
 */
public class Loopback {
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // ElasticMQ logs to stdout, where only the URL must appear
        var server = SQSRestServerBuilder.withInterface("127.0.0.1").withDynamicPort().start();
        out.println("http://127.0.0.1:" + server.waitUntilStarted().localAddress().getPort());

        ProcessHandle.current().parent().ifPresent(p -> p.onExit().thenRun(() -> System.exit(0)));
        Thread.currentThread().join();
    }
}
