"""A broker's configuration: `config` has the values, `config_keys` the keys of 0.8.2.2,
`keys_0_9` those that came with 0.9.0 and 0.10.2, `endpoints` the listeners."""
