# SPDX-License-Identifier: Apache-2.0
import pytest

# With this, a failed assertion in tests/support shows its values, as one in a test file does.
pytest.register_assert_rewrite("tests.support")
