"""Versions name the uid under which their provider keeps their files: their own, so far."""

from typing import Any

from django.db import migrations, models
from django.db.models import F


def keep_own(apps: Any, _schema: Any) -> None:
    """Until now each version had its files to itself."""
    apps.get_model("replicas", "ServiceVersion").objects.update(files_uid=F("uid"))


class Migration(migrations.Migration):
    dependencies = [("replicas", "0002_liveness")]

    operations = [
        migrations.AddField(
            model_name="serviceversion",
            name="files_uid",
            field=models.CharField(
                default="", help_text="the uid under which its provider keeps files and setup", max_length=32
            ),
            preserve_default=False,
        ),
        migrations.RunPython(keep_own, migrations.RunPython.noop),
    ]
