import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.core.common.transport.TransportAddress;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch on loopback, in the directory that is named. It says its port, and ends when its standard input does. */
public class Engine extends Node {
    private Engine(Settings settings, Path config) {
        super(
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), config, () -> "tested"),
            List.of(Netty4Plugin.class, CommonAnalysisPlugin.class),
            true
        );
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]).toAbsolutePath();
        Path config = Files.createDirectories(home.resolve("config"));
        Settings settings = Settings.builder()
            .put("path.home", home.toString())
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", "0")
            .put("transport.port", "0")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        try (Node node = new Engine(settings, config)) {
            node.start();
            HttpServerTransport http = node.injector().getInstance(HttpServerTransport.class);
            TransportAddress address = http.boundAddress().publishAddress();
            System.out.println("ready " + address.getPort());
            System.in.transferTo(java.io.OutputStream.nullOutputStream());
        }
        System.exit(0);
    }
}
