"""The store as a job sees it: its layout, locks on objects, staging, publishing, manifests."""
