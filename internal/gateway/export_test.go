package gateway

// Listeners returns the listeners of the router.
func (r *Router) Listeners() []ListenerMatch { return r.listeners }

// SetMaxWork sets how much a search may do, until the result is called.
func SetMaxWork(n int) (restore func()) {
	was := maxWork
	maxWork = n
	return func() { maxWork = was }
}
