package tracker

func demoData() *data { return fixtureData() }
