"""Topics that requests create, delete and configure: `topic_requests` checks them, `topic_creator`
writes them, `topic_waits` waits for the controller, `topic_config_changes` applies overrides,
`deleted_topics` forgets the offsets of groups."""
