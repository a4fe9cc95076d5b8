# SPDX-License-Identifier: Apache-2.0


class Future:
    def __init__(self, devices=None):
        self.devices = devices

    def set_result(self, result):
        self._result = result

    def value(self):
        return self._result
