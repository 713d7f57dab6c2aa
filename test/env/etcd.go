package env

// Etcd returns the URL of etcd. It needs no credentials.
func (e *Env) Etcd() string { return e.plane.ControlPlane.Etcd.URL.String() }
