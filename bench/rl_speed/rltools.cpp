// SPDX-License-Identifier: Apache-2.0
//
// RLtools' own Pendulum PPO program, timed: its configuration (pendulum/ppo/cpu/config.h of a checkout) in its loop,
// with one seed. Prints "seed SEED seconds S cpu C steps N return R"; playing for R is not in S and C.
// The products go through a BLAS only when nn/operations_cpu_mux.h is included before the layers, which RLtools' own
// main file leaves out; without that it is ten times slower.
//   rltools SEED
// The order of the includes matters; blank lines keep it.
#define BENCHMARK
#include <rl_tools/operations/cpu_mux.h>

#include <rl_tools/rl/environments/pendulum/operations_generic.h>

#include <rl_tools/rl/environment_wrappers/scale_observations/operations_generic.h>

#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>

#include <rl_tools/nn/operations_cpu_mux.h>

#include <rl_tools/nn/layers/standardize/operations_generic.h>
#include <rl_tools/nn_models/mlp_unconditional_stddev/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>

#include <rl_tools/nn/optimizers/adam/operations_generic.h>

#include <rl_tools/rl/algorithms/ppo/loop/core/config.h>
#include <rl_tools/rl/loop/steps/evaluation/config.h>
#include <rl_tools/rl/loop/steps/timing/config.h>

#include <rl_tools/rl/algorithms/ppo/loop/core/operations_generic.h>
#include <rl_tools/rl/loop/steps/evaluation/operations_generic.h>
#include <rl_tools/rl/loop/steps/timing/operations_cpu.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace rlt = rl_tools;
#include <config.h>

using Device = rlt::devices::DEVICE_FACTORY<>;
using Index = Device::index_t;
using Types = rlt::numeric_types::Policy<float>;
using Config = CONFIG_FACTORY<Device, Types, true>;
using Loop = Config::LOOP_CORE_CONFIG;
using State = Loop::State<Loop>;

static constexpr Index EPISODES = 1000;
using EvalSpec =
    rlt::rl::utils::evaluation::Specification<Types, Index, Loop::ENVIRONMENT_EVALUATION, EPISODES,
                                              Config::ENVIRONMENT::EPISODE_STEP_LIMIT>;
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
    Index rounds = 1;
    while (!rlt::step(device, state)) {
        rounds++;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double took_cpu = (double)(std::clock() - cpu) / CLOCKS_PER_SEC;
    rlt::rl::utils::evaluation::Result<EvalSpec> result;
    rlt::evaluate(device, rlt::get_ref(device, state.envs, 0), state.ui, rlt::get_actor(state), buffer, result,
                  state.rng, rlt::Mode<rlt::mode::Evaluation<>>{});
    const Index steps = rounds * Config::LOOP_CORE_PARAMETERS::N_ENVIRONMENTS *
                        Config::LOOP_CORE_PARAMETERS::ON_POLICY_RUNNER_STEPS_PER_ENV;
    std::printf("seed %llu seconds %.4f cpu %.4f steps %llu return %.2f\n", (unsigned long long)seed, took.count(),
                took_cpu, (unsigned long long)steps, (double)result.returns_mean);
    std::fflush(stdout);
    rlt::free(device, state);
    rlt::free(device, buffer);
}

int main(int argc, char **argv)
{
    run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0);
    return 0;
}
