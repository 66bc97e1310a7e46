"""What carries replicas: providers know nothing of Django, rows or the control plane."""
