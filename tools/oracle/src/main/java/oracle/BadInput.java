// SPDX-License-Identifier: Apache-2.0
package oracle;

/** Thrown for a line that is JSON but not a valid request. */
final class BadInput extends RuntimeException {
    private static final long serialVersionUID = 1L;

    BadInput(String message) {
        super(message);
    }
}
