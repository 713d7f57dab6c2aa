// Package bench measures Overrule beside a reference in the same run, on
// clusters of package fixture. No figure is a test: "make bench" prints them in
// one table beside the limits that they are to keep.
//
// Each figure is a metric of a benchmark, so benchstat compares two runs. The
// machine may be noisy: what counts end to end is the ratio to the reference,
// whose requests alternate with ours.
package bench
