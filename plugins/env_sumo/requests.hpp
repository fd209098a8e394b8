/* SPDX-License-Identifier: Apache-2.0
 *
 * Who meets whom at signals and who yields, as the net's file says it (<request>, SUMO's manual, "SUMO Road Networks").
 * libsumo reports the lanes that go before a link and not the links, so that one lane's right turn, which merges, cannot be
 * distinguished from its left turn, which crosses. Threads: one.
 */
#ifndef DTRAIN_ENV_SUMO_REQUESTS_HPP
#define DTRAIN_ENV_SUMO_REQUESTS_HPP

#include <expat.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

class net_requests
{
  public:
    /* A .net.xml, plain or by gzip. Throws std::runtime_error with file and line. */
    explicit net_requests(const std::string &path)
    {
        gzFile file = gzopen(path.c_str(), "rb");
        XML_Parser parser = XML_ParserCreate(nullptr);
        std::string wrong;
        if (file == nullptr || parser == nullptr) {
            wrong = "cannot be opened";
        } else {
            XML_SetUserData(parser, this);
            XML_SetElementHandler(parser, open, close);
            char part[1 << 16];
            for (int n = 1; n > 0 && wrong.empty();) {
                n = gzread(file, part, sizeof(part));
                if (n < 0) {
                    wrong = "cannot be read";
                } else if (XML_Parse(parser, part, n, n == 0) != XML_STATUS_OK) {
                    wrong = "line " + std::to_string(XML_GetCurrentLineNumber(parser)) + ": " +
                            XML_ErrorString(XML_GetErrorCode(parser));
                }
            }
        }
        XML_ParserFree(parser);
        if (file != nullptr) {
            gzclose(file);
        }
        if (!wrong.empty()) {
            throw std::runtime_error(path + ": " + wrong);
        }
    }

    /* foe, responds: [n, n] of the links of a signal, zeros. false: it has too many connections. */
    bool fill(const std::string &signal, size_t n, std::vector<uint8_t> &foe, std::vector<uint8_t> &responds) const
    {
        struct link {
            const connection *c;
            const std::pair<size_t, size_t> *request;
        };
        std::vector<link> mine;
        const auto found = connections_.find(signal);
        if (found == connections_.end()) {
            return true;
        }
        for (const connection &c : found->second) {
            if (c.index < n) {
                mine.push_back({&c, request_of(c)});
            }
        }
        if (mine.size() > most_connections) {
            return false;
        }
        for (const link &x : mine) {
            const connection *a = x.c;
            const std::pair<size_t, size_t> *here = x.request;
            for (const link &y : mine) {
                const connection *b = y.c;
                const std::pair<size_t, size_t> *there = y.request;
                if (here == nullptr || there == nullptr || here->first != there->first || a->index == b->index) {
                    continue;
                }
                const junction &j = junctions_[here->first];
                const size_t at = a->index * n + b->index;
                foe[at] |= bit(j.foes, here->second, there->second) || bit(j.foes, there->second, here->second);
                responds[at] |= !a->is_first && bit(j.responses, here->second, there->second);
            }
        }
        return true;
    }

  private:
    struct junction {
        std::vector<std::string> foes, responses; /* of each link, the rightmost letter is link 0 */
    };
    static constexpr size_t most_connections = 8192; /* of a signal: each is held against each */
    struct connection {
        std::string via;
        size_t index;
        bool is_first; /* it never yields */
    };

    static bool bit(const std::vector<std::string> &rows, size_t row, size_t k)
    {
        return row < rows.size() && k < rows[row].size() && rows[row][rows[row].size() - 1 - k] == '1';
    }

    /* Junction and link: one of the lanes that the connection runs over is named there. */
    const std::pair<size_t, size_t> *request_of(const connection &c) const
    {
        std::string lane = c.via;
        for (int i = 0; i < 8 && !lane.empty(); i++) {
            const auto at = inside_.find(lane);
            if (at != inside_.end()) {
                return &at->second;
            }
            const auto next = after_.find(lane);
            lane = next != after_.end() ? next->second : "";
        }
        return nullptr;
    }

    static const char *value(const XML_Char **attributes, const char *name)
    {
        for (; attributes[0] != nullptr; attributes += 2) {
            if (strcmp(attributes[0], name) == 0) {
                return attributes[1];
            }
        }
        return "";
    }

    static void open(void *self, const XML_Char *name, const XML_Char **attributes)
    {
        net_requests &r = *static_cast<net_requests *>(self);
        if (strcmp(name, "junction") == 0 && strcmp(value(attributes, "type"), "internal") != 0) {
            r.junctions_.emplace_back();
            std::istringstream lanes(value(attributes, "intLanes"));
            std::string lane;
            for (size_t k = 0; lanes >> lane; k++) {
                r.inside_[lane] = {r.junctions_.size() - 1, k};
            }
        } else if (strcmp(name, "request") == 0 && !r.junctions_.empty()) {
            r.junctions_.back().foes.emplace_back(value(attributes, "foes"));
            r.junctions_.back().responses.emplace_back(value(attributes, "response"));
        } else if (strcmp(name, "connection") == 0) {
            const char *signal = value(attributes, "tl"), *via = value(attributes, "via");
            const char *from = value(attributes, "from"), *pass = value(attributes, "pass");
            if (from[0] == ':') {
                r.after_[std::string(from) + "_" + value(attributes, "fromLane")] = via;
            } else if (signal[0] != '\0') {
                const bool is_first = strcmp(pass, "1") == 0 || strcmp(pass, "true") == 0;
                r.connections_[signal].push_back({via, strtoul(value(attributes, "linkIndex"), nullptr, 10), is_first});
            }
        }
    }

    static void close(void *, const XML_Char *) {}

    std::vector<junction> junctions_;
    /* only searched by key: their order reaches no result */
    std::unordered_map<std::string, std::vector<connection>> connections_; /* of a signal */
    std::unordered_map<std::string, std::pair<size_t, size_t>> inside_;
    std::unordered_map<std::string, std::string> after_;
};

#endif
