# SPDX-License-Identifier: Apache-2.0
import pytest

# A failed assertion in a helper of the tests shows its values, as in a test file.
pytest.register_assert_rewrite("tests.support")
