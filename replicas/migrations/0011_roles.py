"""The groups viewer, operator and admin. A group of that name that is there already is left as it is."""

from django.db import migrations

LOOK = {"view_service": "Can view service"}
ACT = LOOK | {
    "operate_service": "Can scale, restart and take down services",
    "deploy_service": "Can create services and apply versions",
}
ADMIN = ACT | {
    "act_on_any_service": "Can act on services that belong to others, and give them away",
    "administer": "Can prune history, and manage people and their tokens",
}
PEOPLE = {f"{verb}_user": f"Can {verb} user" for verb in ("add", "change", "delete", "view")}
GROUPS = {
    "viewer": {("replicas", "service"): LOOK},
    "operator": {("replicas", "service"): ACT},
    "admin": {
        ("replicas", "service"): ADMIN,
        ("replicas", "apitoken"): {"view_apitoken": "Can view API token"},
        ("auth", "user"): PEOPLE,
    },
}


def make(apps, schema_editor):
    """Permissions are made after all migrations; on a new database these are made here, and found there."""
    alias = schema_editor.connection.alias
    types = apps.get_model("contenttypes", "ContentType").objects.using(alias)
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    groups = apps.get_model("auth", "Group").objects.using(alias)
    for name, wanted in GROUPS.items():
        group, made = groups.get_or_create(name=name)
        if not made:
            continue
        for (app, model), words in wanted.items():
            kind, _ = types.get_or_create(app_label=app, model=model)
            for codename, sentence in words.items():
                found, _ = permissions.get_or_create(content_type=kind, codename=codename, defaults={"name": sentence})
                group.permissions.add(found)


class Migration(migrations.Migration):
    dependencies = [
        ("replicas", "0010_people"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(make, migrations.RunPython.noop, elidable=False)]
