import java.io.PrintStream;
import org.elasticmq.rest.sqs.SQSRestServerBuilder;

/**
 * ElasticMQ, in memory, on a free port of the loopback address. Prints its URL once it answers; ends with the process
 * that started it, however that one ends.
 */
public class Loopback {
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // its actors log there, and only the URL is wanted
        var server = SQSRestServerBuilder.withInterface("127.0.0.1").withDynamicPort().start();
        out.println("http://127.0.0.1:" + server.waitUntilStarted().localAddress().getPort());

        ProcessHandle.current().parent().ifPresent(p -> p.onExit().thenRun(() -> System.exit(0)));
        Thread.currentThread().join();
    }
}
