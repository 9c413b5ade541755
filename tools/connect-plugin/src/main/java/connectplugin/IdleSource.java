// SPDX-License-Identifier: Apache-2.0
package connectplugin;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A connector with {@code tasks.max} tasks that produce nothing; tests only need their assignment. */
public final class IdleSource extends SourceConnector {
    private static final long REST_MS = 500;

    @Override
    public void start(Map<String, String> properties) {}

    @Override
    public Class<? extends Task> taskClass() {
        return IdleTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return Collections.nCopies(maxTasks, Map.of());
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "0";
    }

    /** A task whose polls return nothing. */
    public static final class IdleTask extends SourceTask {
        @Override
        public void start(Map<String, String> properties) {}

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(REST_MS);
            return null;
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "0";
        }
    }
}
