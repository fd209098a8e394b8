/* SPDX-License-Identifier: Apache-2.0
 *
 * A .sumocfg as SUMO gets it: a copy in memory that has only what options.def passes. Files to read are named from the
 * root, as the copy has no folder. What values mean is SUMO's matter. Source: SUMO's manual, "Using the Command Line
 * Applications", configuration files. Threads: one.
 */
#ifndef DTRAIN_ENV_SUMO_CONFIG_HPP
#define DTRAIN_ENV_SUMO_CONFIG_HPP

#include "options.h"

#include <expat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

class scenario_config
{
  public:
    std::string text;                  /* XML */
    std::vector<std::string> left_out; /* names of options, in the order of the file */

    /* outputs: OUTPUT and DETAIL are passed, too. Throws std::runtime_error with file and line. */
    scenario_config(const std::string &path, bool outputs) : path_(path), outputs_(outputs)
    {
        std::ifstream in(path, std::ios::binary);
        std::ostringstream all;
        if (!in || !(all << in.rdbuf())) {
            throw std::runtime_error("Could not access configuration '" + path + "'");
        }
        find_folder();
        parser_ = XML_ParserCreate(nullptr);
        if (parser_ == nullptr) {
            throw std::runtime_error("no memory for a configuration");
        }
        XML_SetUserData(parser_, this);
        XML_SetElementHandler(parser_, open, close);
        XML_SetCharacterDataHandler(parser_, letters);
        const std::string xml = all.str();
        const bool fits = xml.size() <= most_bytes;
        const bool is_read = fits && XML_Parse(parser_, xml.data(), static_cast<int>(xml.size()), 1) == XML_STATUS_OK;
        if (!is_read && wrong_.empty()) {
            wrong_ = !fits ? "it has " + std::to_string(xml.size()) + " bytes; at most " + std::to_string(most_bytes) +
                                 " are read"
                           : here() + XML_ErrorString(XML_GetErrorCode(parser_));
        }
        XML_ParserFree(parser_);
        if (!wrong_.empty()) {
            throw std::runtime_error(path + ": " + wrong_);
        }
        text = "<configuration>\n" + body_ + "</configuration>\n";
    }

  private:
    static constexpr size_t most_bytes = 64 << 20;
    std::string path_, folder_, body_, item_, value_, wrong_;
    XML_Parser parser_ = nullptr;
    bool outputs_;

    std::string here() const
    {
        return "line " + std::to_string(XML_GetCurrentLineNumber(parser_)) + ": ";
    }

    void find_folder()
    {
        const size_t slash = path_.rfind('/');
        folder_ = slash != std::string::npos ? path_.substr(0, slash + 1) : "";
        if (path_[0] != '/') {
            char *now = getcwd(nullptr, 0);
            if (now == nullptr) {
                throw std::runtime_error(path_ + ": no current folder: " + strerror(errno));
            }
            folder_ = std::string(now) + "/" + folder_;
            free(now);
        }
    }

    /* SUMO replaces %XX in names of files that it takes from a configuration; "${" begins a variable. */
    std::string from_root(const std::string &names) const
    {
        std::string out, escaped;
        for (const char c : folder_) {
            escaped += c == '%' ? "%25" : std::string(1, c);
        }
        std::istringstream list(names);
        for (std::string name; std::getline(list, name, ',');) {
            const size_t first = name.find_first_not_of(" \t\r\n");
            name.erase(0, first == std::string::npos ? name.size() : first);
            const bool is_whole = name.empty() || name[0] == '/' || name.compare(0, 2, "${") == 0;
            out += (out.empty() ? "" : ",") + (is_whole ? name : escaped + name);
        }
        return out;
    }

    static std::string as_xml(const std::string &value)
    {
        std::string out;
        for (const char c : value) {
            switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\t':
            case '\n':
            case '\r':
                out += "&#" + std::to_string(static_cast<int>(c)) + ";";
                break;
            default:
                out += c;
            }
        }
        return out;
    }

    static bool is_no(const std::string &value)
    {
        return sumo_option_is_in("false no off f 0 -", " ", value.c_str(), value.size());
    }

    void set(const std::string &name, const std::string &value)
    {
        const sumo_option_row row = sumo_option_find(name.c_str());
        const bool is_written = row.what == SUMO_OPTION_OUTPUT || row.what == SUMO_OPTION_DETAIL;
        if (row.what == SUMO_OPTION_REFUSED && !is_no(value) && wrong_.empty()) {
            wrong_ = here() + "the option " + name + " = \"" + value + "\" is not supported: " + row.reason;
            XML_StopParser(parser_, XML_FALSE);
        }
        if (row.what == SUMO_OPTION_REFUSED || row.what == SUMO_OPTION_IGNORED || (is_written && !outputs_)) {
            if (row.what == SUMO_OPTION_OUTPUT || (row.what == SUMO_OPTION_IGNORED && !is_no(value))) {
                left_out.push_back(name);
            }
            return;
        }
        const bool is_file = row.what == SUMO_OPTION_INPUT || row.what == SUMO_OPTION_OUTPUT;
        body_ += "<" + name + " value=\"" + as_xml(is_file ? from_root(value) : value) + "\"/>\n";
    }

    static void open(void *self, const XML_Char *name, const XML_Char **attributes)
    {
        auto &c = *static_cast<scenario_config *>(self);
        c.item_ = name;
        c.value_.clear();
        for (; attributes[0] != nullptr; attributes += 2) {
            const bool is_value = strcmp(attributes[0], "value") == 0 || strcmp(attributes[0], "v") == 0;
            if (is_value && attributes[1][0] != '\0') {
                c.set(c.item_, attributes[1]);
            }
        }
    }

    static void letters(void *self, const XML_Char *text, int n)
    {
        static_cast<scenario_config *>(self)->value_.append(text, static_cast<size_t>(n));
    }

    static void close(void *self, const XML_Char *)
    {
        auto &c = *static_cast<scenario_config *>(self);
        if (!c.item_.empty() && c.value_.find_first_not_of(" \t\r\n\a") != std::string::npos) {
            c.set(c.item_, c.value_);
        }
        c.item_.clear();
        c.value_.clear();
    }
};

#endif
