/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's entrance: arguments and exit codes.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dtrain %s\n", PACKAGE_VERSION);
        return 0;
    }
    fprintf(stderr, "error: this build knows --version only\n");
    return 2;
}
