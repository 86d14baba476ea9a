// The face that Python sees: engine.syntax._native. Walks over syntax trees of Python's module ast.
//
// Both functions look at every node of a program, for every child of a run, and in Python they were
// a third of what reading a program costs.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

// A field of a kind of node.
struct Field {
    nb::object name;
    bool counts;    // whether two programs that differ in it are two
    bool is_block;  // whether it may hold statements
};

enum class Role { other, scope_of_class, scope_of_function, annotated, pass, expression, constant };

// A kind of node, such as ast.Name.
struct Kind {
    Role role = Role::other;
    std::string opening;  // how its text begins
    std::vector<Field> fields;
};

Role role_of(std::string_view kind) {
    static const std::unordered_map<std::string_view, Role> roles{
        {"ClassDef", Role::scope_of_class},       {"FunctionDef", Role::scope_of_function},
        {"AsyncFunctionDef", Role::scope_of_function}, {"AnnAssign", Role::annotated},
        {"Pass", Role::pass},                     {"Expr", Role::expression},
        {"Constant", Role::constant}};
    const auto found = roles.find(kind);
    return found == roles.end() ? Role::other : found->second;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    for (const std::string_view each : names)
        if (name == each) return true;
    return false;
}

class Kinds {
public:
    Kinds() : node_(nb::module_::import_("ast").attr("AST")) {}

    bool is_node(nb::handle value) const {
        return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(node_.ptr()));
    }

    const Kind& of(nb::handle node) {
        const auto found = kinds_.find(node.type().ptr());
        if (found != kinds_.end()) return found->second;
        const nb::handle type = node.type();
        const std::string name = nb::cast<nb::str>(type.attr("__name__")).c_str();
        Kind kind{role_of(name), "(" + name + " ", {}};
        for (const nb::handle field : type.attr("_fields")) {
            const std::string_view text = nb::borrow<nb::str>(field).c_str();
            kind.fields.push_back(
                // Whether a name is read or bound (ctx) follows from where it stands.
                {nb::borrow(field),
                 !is_one_of(text, {"annotation", "ctx", "kind", "returns", "type_comment"}),
                 is_one_of(text, {"body", "orelse", "finalbody"})});
        }
        type.inc_ref();  // it stays, so its address stays its own
        return kinds_.emplace(type.ptr(), std::move(kind)).first->second;
    }

private:
    nb::object node_;
    std::unordered_map<PyObject*, Kind> kinds_;
};

Kinds& kinds() {
    static Kinds* const all = new Kinds;  // never destroyed: Python may be gone by then
    return *all;
}

// A field's value; None where a node that a program made lacks it.
nb::object value_of(nb::handle node, const Field& field) {
    return nb::getattr(node, field.name, nb::none());
}

// The nodes in the order of ast.walk, and how many levels lie below the root.
std::optional<std::pair<nb::list, int>> walk(nb::handle tree, int most_levels) {
    nb::list nodes;
    nodes.append(tree);
    std::size_t begin = 0;
    for (int levels = 0;; ++levels) {
        const std::size_t end = nodes.size();
        for (; begin < end; ++begin) {
            const nb::object node = nodes[begin];
            for (const Field& field : kinds().of(node).fields) {
                const nb::object value = value_of(node, field);
                if (kinds().is_node(value)) {
                    nodes.append(value);
                } else if (PyList_CheckExact(value.ptr())) {
                    for (const nb::handle each : nb::borrow<nb::list>(value))
                        if (kinds().is_node(each)) nodes.append(each);
                }
            }
        }
        if (nodes.size() == end) return std::pair(std::move(nodes), levels);
        if (levels + 1 >= most_levels) return std::nullopt;
    }
}

// Writes what counts of a tree. What comes of the program has its length before it, so no two trees
// are one text.
class Writer {
public:
    void write(nb::handle value, bool in_class) {
        if (kinds().is_node(value)) {
            write_node(value, in_class);
        } else if (PyList_CheckExact(value.ptr())) {
            write_list(nb::borrow<nb::list>(value), in_class, false);
        } else if (value.is_none()) {
            text_ += "~";
        } else {
            write_constant(value);
        }
    }

    const std::string& text() const { return text_; }

private:
    void write_node(nb::handle node, bool in_class) {
        const Kind& kind = kinds().of(node);
        if (kind.role == Role::annotated) {
            const nb::object value = node.attr("value");
            if (in_class) {  // a dataclass makes a field of it
                text_ += "(Field ";
                write(node.attr("target"), in_class);
                write(node.attr("annotation"), in_class);
                write(value, in_class);
                return;
            }
            if (!value.is_none()) {
                text_ += "(Assign [1:";
                write(node.attr("target"), in_class);
                write(value, in_class);
                return;
            }
        }
        if (kind.role == Role::scope_of_class) in_class = true;
        if (kind.role == Role::scope_of_function) in_class = false;
        text_ += kind.opening;
        for (const Field& field : kind.fields) {
            if (!field.counts) continue;
            const nb::object value = value_of(node, field);
            if (field.is_block && PyList_CheckExact(value.ptr()))
                write_list(nb::borrow<nb::list>(value), in_class, true);
            else
                write(value, in_class);
        }
    }

    void write_list(nb::list values, bool in_class, bool is_block) {
        std::vector<nb::handle> written;
        for (const nb::handle each : values)
            if (!is_block || !says_nothing(each)) written.push_back(each);
        text_ += "[" + std::to_string(written.size()) + ":";
        for (const nb::handle each : written) write(each, in_class);
    }

    static bool says_nothing(nb::handle statement) {
        const Role role = kinds().of(statement).role;
        if (role == Role::pass) return true;
        return role == Role::expression &&
               kinds().of(statement.attr("value")).role == Role::constant;
    }

    void write_constant(nb::handle value) {
        // In base 16, because Python refuses to write an int of thousands of digits in base 10.
        const nb::object said = PyLong_CheckExact(value.ptr())
                                    ? nb::steal(PyNumber_ToBase(value.ptr(), 16))
                                    : nb::steal(PyObject_Repr(value.ptr()));
        if (!said) throw nb::python_error();
        const nb::object bytes =
            nb::steal(PyUnicode_AsEncodedString(said.ptr(), "utf-8", "surrogatepass"));
        if (!bytes) throw nb::python_error();
        text_ += "<" + std::string(Py_TYPE(value.ptr())->tp_name) + " " +
                 std::to_string(PyUnicode_GET_LENGTH(said.ptr())) + ":";
        text_.append(PyBytes_AS_STRING(bytes.ptr()), PyBytes_GET_SIZE(bytes.ptr()));
    }

    std::string text_;
};

nb::bytes canonical(nb::handle tree) {
    Writer writer;
    writer.write(tree, false);
    return nb::bytes(writer.text().data(), writer.text().size());
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Walks over syntax trees; see native/tree.cpp.";
    module.def("walk", &walk, nb::arg("tree"), nb::kw_only(), nb::arg("most_levels"),
               "Return the nodes in the order of `ast.walk`, and how many levels lie below the "
               "root; None where the tree has more than `most_levels`.",
               nb::sig("def walk(tree: ast.AST, *, most_levels: int) -> tuple[list[ast.AST], int] "
                       "| None"));
    module.def("canonical", &canonical, nb::arg("tree"),
               "Return the text that `engine.syntax.reading` makes a digest of.");
}
