# SPDX-License-Identifier: Apache-2.0
import pytest

# With this, a failed assertion in tests/support shows its values, as it does in a test file.
pytest.register_assert_rewrite("tests.support")
