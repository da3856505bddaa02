"""The base machine: blocks, stages and marks over tries without later runs."""
