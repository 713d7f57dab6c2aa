package gateway

// Listeners returns the listeners of the router.
func (r *Router) Listeners() []ListenerMatch { return r.listeners }

// SetMaxSteps sets how many matches a search may look at, until the result is called.
func SetMaxSteps(n int) (restore func()) {
	was := maxSteps
	maxSteps = n
	return func() { maxSteps = was }
}
