// SPDX-License-Identifier: Apache-2.0
//
// RLtools' own Pendulum programs of SAC and TD3, timed: their configurations (pendulum/sac/cpu and pendulum/td3/cpu of
// a checkout) in its loop, with one seed. Prints "seed SEED seconds S cpu C steps N return R"; playing for R is not in
// S and C. The products go through a BLAS only when nn/operations_cpu_mux.h is included before the layers.
//   rltools SEED          compiled with -DSAC or -DTD3, and -DSTEPS=N
// The order of the includes matters; blank lines keep it.
#define RL_TOOLS_NN_DISABLE_GENERIC_FORWARD_BACKWARD
#include <rl_tools/operations/cpu_mux.h>

#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>

#include <rl_tools/nn/operations_cpu_mux.h>

#ifdef SAC
#    include <rl_tools/nn/layers/sample_and_squash/operations_generic.h>
#else
#    include <rl_tools/nn/layers/td3_sampling/operations_generic.h>
#endif

#include <rl_tools/rl/environments/pendulum/operations_cpu.h>

#include <rl_tools/nn_models/mlp/operations_generic.h>
#include <rl_tools/nn_models/random_uniform/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>

#include <rl_tools/nn/optimizers/adam/operations_generic.h>

#ifdef SAC
#    include <rl_tools/rl/algorithms/sac/loop/core/config.h>
#else
#    include <rl_tools/rl/algorithms/td3/loop/core/config.h>
#endif
#include <rl_tools/rl/loop/steps/evaluation/config.h>
#include <rl_tools/rl/loop/steps/timing/config.h>

#ifdef SAC
#    include <rl_tools/rl/algorithms/sac/loop/core/operations_generic.h>
#else
#    include <rl_tools/rl/algorithms/td3/loop/core/operations_generic.h>
#endif
#include <rl_tools/rl/loop/steps/evaluation/operations_generic.h>
#include <rl_tools/rl/loop/steps/timing/operations_cpu.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace rlt = rl_tools;

using Types = rlt::numeric_types::Policy<float>;
using Device = rlt::devices::DEVICE_FACTORY<>;
using Random = Device::SPEC::RANDOM::ENGINE<>;
using Index = Device::index_t;
using Environment = rlt::rl::environments::Pendulum<rlt::rl::environments::pendulum::Specification<
    float, Index, rlt::rl::environments::pendulum::DefaultParameters<float>>>;

#ifdef SAC
namespace algorithm = rlt::rl::algorithms::sac;
#else
namespace algorithm = rlt::rl::algorithms::td3;
#endif

struct Parameters : algorithm::loop::core::DefaultParameters<Types, Index, Environment> {
#ifdef SAC
    struct SAC_PARAMETERS : algorithm::DefaultParameters<Types, Index, Environment::ACTION_DIM> {
        static constexpr Index ACTOR_BATCH_SIZE = 100;
        static constexpr Index CRITIC_BATCH_SIZE = 100;
    };
#endif
    static constexpr Index STEP_LIMIT = STEPS;
    static constexpr Index REPLAY_BUFFER_CAP = STEP_LIMIT;
    static constexpr Index ACTOR_NUM_LAYERS = 3;
    static constexpr Index ACTOR_HIDDEN_DIM = 64;
    static constexpr Index CRITIC_NUM_LAYERS = 3;
    static constexpr Index CRITIC_HIDDEN_DIM = 64;
};
using Core = algorithm::loop::core::Config<Types, Index, Random, Environment, Parameters>;
using Loop = rlt::rl::loop::steps::timing::Config<Core>;
using State = Loop::State<Loop>;

static constexpr Index EPISODES = 200;
using EvalSpec = rlt::rl::utils::evaluation::Specification<Types, Index, Environment, EPISODES, 200>;
using Policy = rlt::utils::typing::remove_reference_t<decltype(rlt::get_actor(std::declval<State &>()))>;
using EvalBuffer = rlt::rl::utils::evaluation::PolicyBuffer<
    rlt::rl::utils::evaluation::PolicyBufferSpecification<EvalSpec, Policy, true>>;

static void run(Index seed)
{
    Device device;
    State state;
    EvalBuffer buffer;
    rlt::init(device);
    rlt::malloc(device, state);
    rlt::malloc(device, buffer);
    rlt::init(device, state, seed);
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    while (!rlt::step(device, state)) {
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double took_cpu = (double)(std::clock() - cpu) / CLOCKS_PER_SEC;
    Environment environment;
    rlt::rl::environments::DummyUI ui;
    rlt::rl::utils::evaluation::Result<EvalSpec> result;
    rlt::evaluate(device, environment, ui, rlt::get_actor(state), buffer, result, state.rng,
                  rlt::Mode<rlt::mode::Evaluation<>>{});
    std::printf("seed %llu seconds %.4f cpu %.4f steps %llu return %.2f\n", (unsigned long long)seed, took.count(),
                took_cpu, (unsigned long long)STEPS, (double)result.returns_mean);
    std::fflush(stdout);
    rlt::free(device, state);
    rlt::free(device, buffer);
}

int main(int argc, char **argv)
{
    run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0);
    return 0;
}
