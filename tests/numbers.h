/* SPDX-License-Identifier: Apache-2.0
 *
 * What is a number in an attribute of XML, and what is none: the same to imports (plugins/traffic/text/xml_reader.h)
 * and to plugins/env_traffic/xml.h, of which each has its test.
 */
#ifndef DTRAIN_TESTS_NUMBERS_H
#define DTRAIN_TESTS_NUMBERS_H

static const struct {
    const char *text;
    double value; /* from 0 to 40 */
    int is_number;
} number_texts[] = {
    {"9", 9, 1},     {"9.5", 9.5, 1},      {"+9", 9, 1},
    {"09", 9, 1},    {"9.", 9, 1},         {".5", 0.5, 1},
    {"1e1", 10, 1},  {"1E+1", 10, 1},      {"50e-1", 5, 1},
    {" 9 ", 9, 1},   {"&#9;9&#10;", 9, 1}, {"13.8900000000000005684341886080801486968994140625", 13.89, 1},
    {"0x9", 0, 0},   {"inf", 0, 0},        {"INF", 0, 0},
    {"nan", 0, 0},   {"NaN", 0, 0},        {"", 0, 0},
    {" ", 0, 0},     {"9 9", 0, 0},        {"9,5", 0, 0},
    {"1e", 0, 0},    {"e1", 0, 0},         {"9m", 0, 0},
    {"1e999", 0, 0}, {"--9", 0, 0},        {"9-", 0, 0},
    {"-", 0, 0},     {".", 0, 0}};
enum { N_NUMBER_TEXTS = sizeof(number_texts) / sizeof(number_texts[0]) };

#endif
