// The schema of every operator, in data-flow order. This file is the contract
// between Python and C++; the other files here register the CPU kernels.
//
// Random operators are pure: `key` is int64 [1, 3] = (seed, epoch, batch) and
// `call_id` numbers the draws of a program (hop h draws as call_id + h). An
// operator on several batches has one row of `key` per batch, and `ptr`, int64
// [B + 1], is the start of each batch's rows (columns, ids). Each batch gets
// the result it gets alone, concatenated; positions in rows count the rows of
// all batches.
// An empty tensor stands for an absent item of a Tensor[].
// A `graph` has tensors per relation: indptr and indices, then optional
// cum_weight and edge_time. `ends` has the node types of its rows and of its
// columns. Options are positional: each keyword would take 0.3 us; an omitted
// argument takes 0.1 us. No operator takes a string: torch leaks its memory,
// some 50 bytes a call.
// `columns` has the start and the root of each column, and optional times of
// all edges and of columns; `options` are num_threads, relation, last and an
// optional time_window.
// `last` selects the latest edges; `frontier` is 0 for 'row', 1 for 'nodes', 2
// for 'new' and 3 for 'unseen'.
// `device_of` is a tensor, possibly empty, on the device that draws.
#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(gsample, m) {
  // Formats. `check_csc` returns int64 [3] = (broken rule, position, value).
  m.def(
      "coo_to_csc(Tensor row, Tensor col, SymInt num_cols, bool wide_indptr, "
      "bool wide_indices, SymInt? num_rows=None) -> "
      "(Tensor indptr, Tensor indices, Tensor perm)");
  m.def("check_csc(Tensor indptr, Tensor indices, SymInt num_rows) -> Tensor");
  // Few edges, for vertex programs. `most`, int64 [1], is the largest degree,
  // or -1 if a vertex is out of range. Edges from a vertex to itself are kept
  // (`loops` 0), removed (1), or replaced by one for each vertex (2).
  m.def(
      "sort_edges(Tensor edge_index, SymInt num_rows, SymInt num_cols, "
      "int loops) -> (Tensor indptr, Tensor indices, Tensor edge_id, "
      "Tensor degree, Tensor most)");
  m.def(
      "transpose_columns(Tensor indptr, Tensor indices, Tensor? edge_id, "
      "SymInt num_rows) -> (Tensor indptr, Tensor indices, Tensor edge_id, "
      "Tensor most)");
  m.def("cumulate_weights(Tensor indptr, Tensor weight) -> Tensor");
  m.def(
      "positive_weights(Tensor weight, Tensor? ptr=None) -> "
      "(Tensor index, Tensor cum_weight, Tensor ptr)");
  m.def("advise_huge_pages(Tensor(a!) tensor) -> ()");

  // Sampling. `seed_ptr`, one per type, is on the CPU; outputs of batches are
  // concatenated, with local ids and counts per batch.
  m.def(
      "sample_neighbors(Tensor[] graph, int[] ends, SymInt[] num_nodes, "
      "Tensor[] seeds, int[] fanouts, Tensor key, SymInt call_id=0, "
      "bool replace=False, bool disjoint=False, bool last=False, "
      "int? time_window=None, bool return_edge_id=True, int num_threads=0, "
      "Tensor[]? seed_time=None, SymInt[]? max_edges=None, "
      "Tensor[]? seed_ptr=None) -> "
      "(Tensor row, Tensor col, Tensor node, Tensor edge, Tensor batch, "
      "Tensor counts)");
  m.def(
      "induce_subgraph(Tensor indptr, Tensor indices, SymInt num_rows, "
      "Tensor row_nodes, Tensor col_nodes, Tensor? row_batch=None, "
      "Tensor? col_batch=None, *, int num_threads=0) -> "
      "(Tensor row, Tensor col, Tensor edge)");
  m.def(
      "negative_sample(Tensor id, SymInt num_nodes, bool target, Tensor key, "
      "SymInt call_id=0, *, Tensor? cum_weight=None, Tensor? order=None, "
      "Tensor? order_time=None, Tensor? max_time=None, Tensor? anchor=None, "
      "Tensor? indptr=None, Tensor? indices=None) -> Tensor");

  // Matrices. `edge` holds positions in the input's edges; programs without a
  // sampler draw their int64 [1, 3] keys from torch's default generator.
  m.def(
      "slice_cols(Tensor indptr, Tensor indices, Tensor cols, *, "
      "int num_threads=0) -> (Tensor indptr, Tensor indices, Tensor edge)");
  m.def(
      "mask_columns(Tensor indptr, Tensor mask) -> "
      "(Tensor indptr, Tensor edge)");
  m.def(
      "slice_rows(Tensor indptr, Tensor indices, SymInt num_rows, "
      "Tensor rows, Tensor? cols=None, Tensor? row_ptr=None, "
      "Tensor? col_ptr=None, bool whole=True, int num_threads=0) -> "
      "(Tensor indptr, Tensor indices, Tensor edge)");
  m.def(
      "has_edges(Tensor indptr, Tensor indices, Tensor ptr, Tensor rows, "
      "Tensor? cols=None, *, SymInt? num_rows=None, int num_threads=0) -> "
      "Tensor");
  m.def(
      "sample_by_kernel(Tensor indptr, Tensor indices, Tensor cols, "
      "int kernel, Tensor[] operands, int[] roles, Tensor key, "
      "SymInt call_id=0, *, Tensor? id=None, Tensor? before=None, "
      "SymInt? num_rows=None, int num_threads=0) -> "
      "(Tensor indptr, Tensor edge)");
  m.def(
      "match_edges(Tensor indptr, Tensor indices, SymInt num_rows, "
      "Tensor other_indptr, Tensor other_indices, SymInt other_num_rows) -> "
      "Tensor");
  m.def(
      "sample_columns(Tensor indptr, int k, Tensor key, SymInt call_id=0, *, "
      "Tensor? cols=None, Tensor? id=None, Tensor? cum_weight=None, "
      "bool replace=False, Tensor? ptr=None, Tensor[]? columns=None, "
      "int[]? options=None) -> (Tensor indptr, Tensor edge)");
  m.def(
      "last_neighbors(Tensor indptr, Tensor indices, Tensor edge_time, "
      "Tensor cols, Tensor until, int k, Tensor? edge_id=None, "
      "int? time_window=None, bool closed_start=True, bool closed_end=False, "
      "bool ascending=False, bool return_edge=True, int num_threads=0) -> "
      "(Tensor neighbor, Tensor edge, Tensor time)");
  m.def(
      "sample_layers(Tensor[] graph, int[] ends, SymInt[] num_nodes, "
      "Tensor[] seeds, int[] fanouts, Tensor[] key, SymInt[] call_id, "
      "int frontier=1, bool sorted=False, bool replace=False, "
      "bool disjoint=False, bool last=False, int? time_window=None, "
      "bool return_frontier=False, int num_threads=0, "
      "Tensor[]? seed_time=None, Tensor[]? ptr=None) -> "
      "(Tensor[] indptr, Tensor[] row, Tensor[] edge, Tensor[] node, "
      "Tensor[] batch)");
  m.def(
      "sample_nodes(SymInt num_nodes, int k, Tensor key, SymInt call_id=0, "
      "Tensor? cum_weight=None, bool replace=False, Tensor? ptr=None, "
      "Tensor? device_of=None) -> (Tensor node, Tensor ptr)");
  m.def(
      "unique_nodes(Tensor id, SymInt num_nodes, bool sorted=False, "
      "Tensor? ptr=None) -> (Tensor node, Tensor local, Tensor ptr)");
  m.def("random_uniform(Tensor id, Tensor key, SymInt call_id=0) -> Tensor");
  m.def("next_key(Tensor(a!) state) -> Tensor");
  m.def(
      "labor_scale(Tensor indptr, Tensor weight, int k, "
      "Tensor? value=None) -> Tensor");

  // Sums along columns in edge order: the same bits on every device.
  m.def(
      "sum_columns(Tensor indptr, Tensor value, Tensor? perm=None) -> Tensor");

  // Generated kernels: `layout` describes a library's operands, so that a call
  // with other tensors is an error (see torch_gsample/codegen).
  m.def("load_kernel(int descriptor, int[] layout) -> int");
  m.def("unload_kernel(int kernel) -> ()");
  m.def(
      "run_kernel(int kernel, Tensor[] operands, Tensor? indptr=None, "
      "Tensor? indices=None, Tensor? edge_id=None, Tensor? order=None, "
      "SymInt num_rows=0, SymInt num_edges=0, *, int num_threads=0) -> "
      "Tensor[]");

  // Vertex programs: kernels with gradients (see
  // torch_gsample/vertex/kernels/operator.py).
  m.def(
      "vertex_unit(int unit, Tensor[] graph, Tensor? types, SymInt[] sizes, "
      "int loops, int level, Tensor[] operands) -> Tensor[]");
  m.def(
      "vertex_relations(Tensor[] graph, Tensor types, SymInt num_sources, "
      "SymInt num_destinations, int loops) -> (Tensor, Tensor)");
  m.def("product_by_type(Tensor x, Tensor weight, Tensor type) -> Tensor");
  m.def(
      "sum_outer_by_type(Tensor x, Tensor y, Tensor type, SymInt num_types) "
      "-> Tensor");
  m.def(
      "project_edges(Tensor[] graph, Tensor types, SymInt[] sizes, int loops, "
      "bool mean, bool reverse, Tensor x, Tensor weight) -> Tensor");
  m.def(
      "sum_outer_edges(Tensor[] graph, Tensor types, SymInt[] sizes, "
      "int loops, bool mean, Tensor x, Tensor y, SymInt num_types) -> Tensor");

  // Walks.
  m.def(
      "random_walk(Tensor indptr, Tensor indices, Tensor seeds, int length, "
      "Tensor key, SymInt call_id=0, *, float restart=0., "
      "Tensor? cum_weight=None, int num_threads=0) -> "
      "(Tensor nodes, Tensor edges)");
  m.def(
      "node2vec_walk(Tensor indptr, Tensor indices, Tensor seeds, int length, "
      "float p, float q, Tensor key, SymInt call_id=0, *, "
      "bool is_sorted=False, Tensor? cum_weight=None, int num_threads=0, "
      "Tensor? ascending=None) -> "
      "(Tensor nodes, Tensor edges)");
  m.def(
      "metapath_walk(Tensor[] indptr, Tensor[] indices, int[] path, "
      "Tensor seeds, Tensor key, SymInt call_id=0, *, float restart=0., "
      "int num_threads=0) -> (Tensor nodes, Tensor edges)");
  m.def(
      "frontier_walk(Tensor indptr, Tensor indices, Tensor seeds, int length, "
      "Tensor key, SymInt call_id=0) -> (Tensor nodes, Tensor edges)");
  m.def(
      "forest_fire(Tensor indptr, Tensor indices, Tensor seeds, float p, "
      "Tensor key, SymInt call_id=0) -> Tensor");

  // Features.
  m.def(
      "gather_rows(Tensor input, Tensor index, Tensor? scale=None, *, "
      "bool widen=False, int num_threads=0) -> Tensor");

  // Synthetic graphs.
  m.def(
      "configuration_model(Tensor indptr, int seed, bool wide_indices) -> "
      "Tensor");
  m.def(
      "rmat_edges(int scale, SymInt num_edges, float[] quadrants, int seed) "
      "-> (Tensor row, Tensor col)");
}
