# SPDX-License-Identifier: Apache-2.0
"""Tag of the wheel: any Python 3, since C is called by ctypes, on this machine's platform."""

import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = "py3-none-" + platform
        build_data["pure_python"] = False
