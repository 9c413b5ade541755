// SPDX-License-Identifier: Apache-2.0
package oracle;

import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.SplittableRandom;

/**
 * Makes Kafka's random member ids reproducible. Kafka makes them with {@code UUID.randomUUID},
 * whose bytes come from the first security provider that has a SecureRandom: this one.
 */
final class SeededIds extends Provider {
    private static final long serialVersionUID = 1;

    private static SplittableRandom random = new SplittableRandom();

    private SeededIds() {
        super("seeded-ids", "1", "Random bytes from a seed");
        putService(new Service(this, "SecureRandom", "Seeded", Bytes.class.getName(), null, null) {
            @Override
            public Object newInstance(Object parameter) {
                return new Bytes();
            }
        });
    }

    /** Must be called before the first id is drawn. */
    static void install() {
        Security.insertProviderAt(new SeededIds(), 1);
    }

    static void seed(long seed) {
        random = new SplittableRandom(seed);
    }

    private static final class Bytes extends SecureRandomSpi {
        private static final long serialVersionUID = 1;

        @Override
        protected void engineSetSeed(byte[] seed) { }

        @Override
        protected void engineNextBytes(byte[] bytes) {
            random.nextBytes(bytes);
        }

        @Override
        protected byte[] engineGenerateSeed(int size) {
            byte[] bytes = new byte[size];
            random.nextBytes(bytes);
            return bytes;
        }
    }
}
