"""The ASGI application that uvicorn serves: Django over HTTP, Channels over websockets, and the process's own life."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
django_application = get_asgi_application()  # sets Django up, which the imports below need

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from controlplane.lifespan import Lifespan  # noqa: E402
from controlplane.origin import SameOrigin  # noqa: E402
from replicas.web.routing import websocket_urlpatterns  # noqa: E402

websockets = AuthMiddlewareStack(URLRouter(websocket_urlpatterns))
application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": AllowedHostsOriginValidator(SameOrigin(websockets)),
        "lifespan": Lifespan(),
    }
)
