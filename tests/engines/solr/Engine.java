import java.nio.file.Path;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;

/** One Solr on loopback, whose home is the directory that is named. It says its port, and ends when its standard input does. */
public class Engine {
    public static void main(String[] arguments) throws Exception {
        String home = Path.of(arguments[0]).toAbsolutePath().toString();
        System.setProperty("host", "127.0.0.1");
        System.setProperty("solr.data.home", Path.of(home, "data").toString());
        JettySolrRunner solr = new JettySolrRunner(home, JettyConfig.builder().setPort(0).build());
        solr.start();
        System.out.println("ready " + solr.getLocalPort());
        System.in.transferTo(java.io.OutputStream.nullOutputStream());
        solr.stop();
        System.exit(0);
    }
}
