package transport

import (
	"cmp"
	"fmt"
)

func notNegative[T cmp.Ordered](what string, value T) error {
	var zero T
	return atLeast(what, value, zero)
}

func atLeast[T cmp.Ordered](what string, value, least T) error {
	if value < least {
		return fmt.Errorf("%s: must not be less than %v", what, least)
	}
	return nil
}
