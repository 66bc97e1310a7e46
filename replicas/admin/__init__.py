"""Django admin: looks at every row, and wishes through the same doors as browser and commands.

Every process imports this, so what is heavy (the spec's models) is imported where it is used.
"""

from django.contrib import admin

from replicas.admin import notices, people, rows, service

admin.site.site_header = "Rollcall administration"
admin.site.site_title = "Rollcall administration"
admin.site.index_title = "Services and what belongs to them"
admin.site.enable_nav_sidebar = False  # the lists need its room; the way back is above them

__all__ = ["notices", "people", "rows", "service"]
