// The face that Python sees: engine.evaluation._native. Linux only.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arenas.hpp"
#include "box.hpp"
#include "workers.hpp"
#include "zygote.hpp"

namespace nb = nanobind;
using namespace brood;

NB_MODULE(_native, module) {
    module.attr("THREAD_LIMIT") = thread_limit;
    module.doc() = "Zygotes, walls and pinned threads of the evaluator; see the folder native.";

    nb::enum_<Outcome>(module, "Outcome", "How an exchange with a zygote came out.")
        .value("ANSWERED", Outcome::answered)
        .value("LATE", Outcome::late)
        .value("LOST", Outcome::lost);
    nb::enum_<Ended>(module, "Ended", "How the last process of a program came to its end.")
        .value("DONE", Ended::done)
        .value("EXITED", Ended::exited)
        .value("DEADLINE", Ended::deadline)
        .value("CROWDED", Ended::crowded)
        .value("UNCONFINED", Ended::unconfined)
        .value("MEMORY", Ended::memory)
        .value("SCRATCH", Ended::scratch);
    nb::class_<Observation>(module, "Observation",
                            "What is known of a program's run. When the outcome is LOST, `output` "
                            "may say why; else it is the end of what the program printed.")
        .def_ro("outcome", &Observation::outcome)
        .def_prop_ro("ended", [](const Observation& each) { return each.reply.ended; })
        .def_prop_ro("exit_code", [](const Observation& each) { return each.reply.exit_code; })
        .def_prop_ro("peak_bytes", [](const Observation& each) { return each.reply.peak_bytes; })
        .def_ro("seconds", &Observation::seconds)
        .def_prop_ro("elapsed", [](const Observation& each) { return each.elapsed.count(); })
        .def_prop_ro("output", [](const Observation& each) {
            return nb::bytes(each.output.data(), each.output.size());
        });

    nb::class_<Workers>(module, "Workers",
                        "A pool of native threads, each bound to one core and serving one lane.")
        .def(nb::init<std::vector<nb::object>, std::vector<int>, double>(), nb::kw_only(),
             nb::arg("lanes"), nb::arg("cores"), nb::arg("seconds"))
        .def("submit", &Workers::submit, nb::kw_only(), nb::arg("ticket"), nb::arg("stage"),
             nb::arg("order"), nb::arg("program"),
             "Queue a program; False when the pool is closed. The lowest order is run first.")
        .def("close", &Workers::close, nb::call_guard<nb::gil_scoped_release>(),
             "End every thread and drop what is queued; idempotent.");

    nb::class_<Zygote>(module, "Zygote", "Forks a confined child for each process of a program.")
        .def(nb::init<int, std::vector<std::vector<int>>, std::vector<int>, double, std::uint64_t,
                      std::uint64_t, const std::vector<std::string>&>(),
             nb::kw_only(), nb::arg("connection"), nb::arg("inputs"), nb::arg("results"),
             nb::arg("seconds"), nb::arg("cpu_seconds"), nb::arg("memory_bytes"),
             nb::arg("readable"))
        .def("serve", &Zygote::serve,
             "Rehearse the first program without an answer, then serve until the connection ends; "
             "returns the stage and the program in each child, None otherwise.")
        .def_prop_ro("missing_walls", [](const Zygote& each) { return each.walls().missing(); },
                     "Each wall that this machine lacks, and why.");

    nb::enum_<Role>(module, "Role", "In which process `Box.open` has returned.")
        .value("SERVER", Role::server)
        .value("JUDGE", Role::judge)
        .value("CANDIDATE", Role::candidate);
    nb::class_<BoxEnd>(module, "BoxEnd",
                       "What became of a box: exit codes, negated for a signal, None for what was "
                       "killed with it; the largest resident size of one of its processes.")
        .def_ro("judge", &BoxEnd::judge)
        .def_ro("candidate", &BoxEnd::candidate)
        .def_ro("peak_bytes", &BoxEnd::peak_bytes);
    nb::class_<Box>(module, "Box", "A tree of processes behind walls; see native/box.hpp.")
        .def(
            "__init__",
            [](Box* self, std::vector<std::string> readable, std::vector<std::string> libraries,
               std::string scratch, std::uint64_t scratch_bytes, std::uint64_t memory_bytes,
               std::uint64_t processes, std::uint64_t cpu_seconds, bool mounts) {
                new (self) Box(BoxSetup{std::move(readable), std::move(libraries),
                                        std::move(scratch), scratch_bytes, memory_bytes, processes,
                                        cpu_seconds, mounts});
            },
            nb::kw_only(), nb::arg("readable"), nb::arg("libraries"), nb::arg("scratch"),
            nb::arg("scratch_bytes"), nb::arg("memory_bytes"), nb::arg("processes"),
            nb::arg("cpu_seconds"), nb::arg("mounts"))
        .def("open", &Box::open, nb::kw_only(), nb::arg("judge"), nb::arg("candidate"),
             "Open the box; returns in the server, the judge and, if it is given descriptors, the "
             "candidate, which have theirs as 0, 1, ... and no others.")
        .def_prop_ro("over", &Box::over, "Descriptor, readable once the judge has ended.")
        .def("usage",
             [](const Box& each, bool exactly) {
                 const Usage usage = each.usage(exactly);
                 return std::pair(usage.tasks, usage.bytes);
             },
             nb::kw_only(), nb::arg("exactly"),
             "Processes and threads in it, and bytes of their memory.")
        .def_static("hurry", &Box::hurry, nb::arg("yes"),
                    "Go before all that is in a box, or as usual; only a superuser may.")
        .def("close", &Box::close, "End everything in it; returns when nothing is left.")
        .def_prop_ro("missing_walls", &Box::missing,
                     "Each wall that this machine lacks, and why.");

    module.def("gather_arenas", &gather_arenas,
               "Have Python and the C library keep what they allocate from now on together.");
    module.def("end_arenas", &end_arenas,
               "Give back the addresses that `gather_arenas` took and that are not in use.");
    module.def("enter_namespaces", &enter_namespaces,
               "Move this process into network, IPC and mount namespaces of its own; '', or why "
               "not.");
    module.def("try_box_namespaces", &try_box_namespaces,
               "Try whether boxes can have namespaces of their own; '', or why not.");
    module.def("seal_mounts", &seal_mounts,
               "Make all files read-only in this mount namespace; '', or why not.");
    module.def("adopt_orphans", &adopt_orphans,
               "Make this process the parent of its descendants' orphans, instead of init.");
    module.def("die_with_parent", &die_with_parent, nb::kw_only(), nb::arg("parent"),
               nb::arg("signal"),
               "Have the kernel send `signal` to this process when the parent's thread that "
               "started it ends; at once if process `parent` is no longer the parent.");
}
