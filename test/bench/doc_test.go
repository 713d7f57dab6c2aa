// Package bench measures Overrule and a reference in the same run, on clusters of
// package worlds. No value is a test: "make bench" prints them in one table with
// the limits that they should meet.
//
// Each value is a metric of a benchmark, so benchstat compares two runs. The
// machine may be noisy: the end-to-end measure is the ratio to the reference,
// whose requests alternate with those to Overrule.
package bench
