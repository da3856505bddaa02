"""SQL that changes a workspace: INSERT, UPDATE, DELETE and MERGE as transactions, and what they read."""
