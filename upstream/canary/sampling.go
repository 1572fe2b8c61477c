package canary

import (
	"hash/maphash"
	"math"
	"math/rand/v2"

	"portico/mapping"
	"portico/upstream"
)

// SetSampling changes from now on which calls are compared. Shares below 0 count as
// 0 and those above 1 as 1; Sampling.Validate finds them.
func (c *Canary) SetSampling(sampling Sampling) {
	sampling = sampling.clone()
	c.sampling.Store(&sampling)
}

// Sampling says which calls are compared now.
func (c *Canary) Sampling() Sampling { return c.sampling.Load().clone() }

// sampled decides about one call. It allocates nothing.
func (c *Canary) sampled(operation mapping.Operation, caller *upstream.Caller) bool {
	sampling := c.sampling.Load()
	share := sampling.share(operation)
	switch {
	case share <= 0:
		return false
	case share >= 1 || c.replaysAll(operation):
		return true
	case sampling.Sticky:
		return c.place(caller) < share
	default:
		return rand.Float64() < share
	}
}

// place gives a caller a place between 0 and 1, the same one each time. The hash is
// keyed, so that nobody can choose a credential that is never compared.
func (c *Canary) place(caller *upstream.Caller) float64 {
	return float64(maphash.String(c.seed, identity(caller))>>11) / (math.MaxUint64>>11 + 1)
}

// identity is what tells callers apart: what a tracker would believe first.
func identity(caller *upstream.Caller) string {
	have := &caller.Credentials
	switch {
	case have.Login != "" && have.Password != "":
		return have.Login
	case have.Token != "":
		return have.Token
	case have.APIKey != "":
		return have.APIKey
	case have.Authorization != "":
		return have.Authorization
	case have.LoginCookies():
		return have.Cookies
	default:
		return caller.Address
	}
}
