import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.solr.client.solrj.request.CollectionAdminRequest;
import org.apache.solr.cloud.MiniSolrCloudCluster;
import org.apache.solr.embedded.JettyConfig;

/**
 * One SolrCloud of one node on loopback, with a collection whose two shards are there. The directory that is named has its conf. It says its port,
 * and ends when its standard input does.
 */
public class Cloud {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("host", "127.0.0.1");
        Path home = Path.of(arguments[0]).toAbsolutePath();
        Path nodes = Files.createDirectory(home.resolve("nodes"));
        MiniSolrCloudCluster cloud = new MiniSolrCloudCluster(1, nodes, JettyConfig.builder().build());
        cloud.uploadConfigSet(home.resolve("conf"), "products");
        CollectionAdminRequest.createCollection("products", "products", 2, 1).process(cloud.getSolrClient());
        cloud.waitForActiveCollection("products", 2, 2);
        System.out.println("ready " + cloud.getJettySolrRunner(0).getLocalPort());
        System.in.transferTo(java.io.OutputStream.nullOutputStream());
        cloud.shutdown();
        System.exit(0);
    }
}
