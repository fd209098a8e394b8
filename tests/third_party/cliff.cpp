// SPDX-License-Identifier: Apache-2.0
//
// cliff: an environment in C++. The cliff walk of Sutton and Barto (2018), example 6.6: from the lower left corner of a
// grid to the lower right one; between them lies a cliff, and an agent that steps into it is back at the start, 100 poorer.
//
//   obs      "A 2" f32   column, row, both in 0..1
//   action   0 up, 1 right, 2 down, 3 left; walls are forbidden by the mask
//   reward   -1 a step, -100 for a fall
//   metrics  falls: how often it fell; arrived: 1 when it came to the goal
#include <dtrain/helpers.h>

#include "misbehave.h"

#include <memory>
#include <new>
#include <vector>

namespace
{

struct config {
    int64_t width, height, steps;
};

const dt_option options[] = {
    DT_OPTION(config, width, DT_OPT_I64, "12", "1", 3, 1000, nullptr, "columns of the grid"),
    DT_OPTION(config, height, DT_OPT_I64, "4", "1", 2, 1000, nullptr, "rows of the grid"),
    DT_OPTION(config, steps, DT_OPT_I64, "100", "env steps", 1, 100000, nullptr, "longest episode"), DT_OPTION_END};

class walk
{
public:
    explicit walk(const config &c) : c_(c), is_cliff_(static_cast<size_t>(c.width), false)
    {
        for (int64_t x = 1; x < c.width - 1; x++) {
            is_cliff_[static_cast<size_t>(x)] = true;
        }
    }
    void reset(const dt_env_io *io)
    {
        x_ = y_ = time_ = falls_ = 0;
        io->alive[0] = 1;
        observe(io);
    }
    dt_status step(const dt_env_io *io)
    {
        static const int64_t dx[] = {0, 1, 0, -1}, dy[] = {1, 0, -1, 0};
        x_ += dx[io->act_i[0]];
        y_ += dy[io->act_i[0]];
        time_++;
        const bool fell = y_ == 0 && is_cliff_[static_cast<size_t>(x_)];
        if (fell) {
            x_ = 0;
            falls_++;
        }
        const bool arrived = y_ == 0 && x_ == c_.width - 1;
        io->reward[0] = fell ? -100.0f : -1.0f;
        io->terminated[0] = arrived;
        io->truncated[0] = !arrived && time_ == c_.steps;
        io->alive[0] = !io->terminated[0] && !io->truncated[0];
        io->metric[0] = static_cast<double>(falls_);
        io->metric[1] = arrived;
        observe(io);
        return io->alive[0] ? DT_OK : DT_DONE;
    }
    const config &settings() const { return c_; }

private:
    void observe(const dt_env_io *io) const
    {
        float *obs = static_cast<float *>(io->obs[0]);
        obs[0] = static_cast<float>(x_) / static_cast<float>(c_.width - 1);
        obs[1] = static_cast<float>(y_) / static_cast<float>(c_.height - 1);
        io->mask[0] = y_ < c_.height - 1;
        io->mask[1] = x_ < c_.width - 1;
        io->mask[2] = y_ > 0;
        io->mask[3] = x_ > 0;
    }
    config c_;
    std::vector<bool> is_cliff_;
    int64_t x_ = 0, y_ = 0, time_ = 0, falls_ = 0;
};

struct state { // the host's, zeroed: what needs constructors lives behind a pointer
    walk *w;
};

// Nothing may be thrown through the host.
dt_status create(void *self, const dt_host *h, const void *cfg)
{
    try {
        static_cast<state *>(self)->w = new walk(*static_cast<const config *>(cfg));
    } catch (const std::bad_alloc &) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for a grid");
    }
    return DT_OK;
}

dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 2", DT_F32, 0}};
    static const int32_t choices[] = {4};
    static const char *const metrics[] = {"falls", "arrived"};
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->metrics = metrics;
    out->n_metrics = 2;
    out->max_steps = static_cast<uint32_t>(static_cast<const state *>(self)->w->settings().steps);
    return DT_OK;
}

dt_status reset(void *self, const dt_env_io *io, uint64_t)
{
    static_cast<state *>(self)->w->reset(io);
    return DT_OK;
}

dt_status step(void *self, const dt_env_io *io)
{
    misbehave(self, sizeof(state));
    return static_cast<state *>(self)->w->step(io);
}

void destroy(void *self)
{
    delete static_cast<state *>(self)->w;
}

dt_env_ops make_ops()
{
    dt_env_ops o = {};
    o.struct_size = sizeof(o);
    o.create = create;
    o.spec = spec;
    o.reset = reset;
    o.step = step;
    o.destroy = destroy;
    return o;
}
const dt_env_ops ops = make_ops();

dt_component make_env()
{
    dt_component c = {};
    c.struct_size = sizeof(c);
    c.kind = DT_KIND_ENV;
    c.id = "cliff";
    c.summary = "the cliff walk";
    c.reference = "Sutton and Barto (2018), Reinforcement Learning, example 6.6";
    c.flags = DT_COMP_DETERMINISTIC;
    c.config_size = sizeof(config);
    c.state_size = sizeof(state);
    c.options = options;
    c.ops = &ops;
    return c;
}
const dt_component env = make_env();
const dt_component *const components[] = {&env};

dt_plugin make_plugin()
{
    dt_plugin p = {};
    p.magic = DT_PLUGIN_MAGIC;
    p.struct_size = sizeof(p);
    p.abi_major = DT_ABI_MAJOR;
    p.abi_minor = DT_ABI_MINOR;
    p.layout = DT_LAYOUT;
    p.name = "cliff";
    p.version = "0.1";
    p.vendor = "a stranger";
    p.license = "Apache-2.0";
    p.n_components = 1;
    p.components = components;
    return p;
}
const dt_plugin plugin = make_plugin();

} // namespace

extern "C" DT_EXPORT const dt_plugin *DT_PLUGIN_ENTRY(void);
extern "C" const dt_plugin *DT_PLUGIN_ENTRY(void)
{
    return &plugin;
}
