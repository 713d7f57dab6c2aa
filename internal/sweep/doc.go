// Package sweep looks at effective policies after each observed change, and reports
// what is wrong with them however it came to be.
package sweep
