"""What all our admin pages share: who may look, rows that nobody edits, badges, and actions that are confirmed."""

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from replicas.actions.powers import ANY, DEPLOY, OPERATE, SEE, refusal
from replicas.models import Service
from replicas.web.numbers import whole

__all__ = ["ANY", "DEPLOY", "OPERATE", "SEE", "Looking", "Sifting", "badge", "block", "confirmed", "refusal"]
PER_PAGE = 100
MOST_NUMBER = 2**63 - 1  # that a row can have
NAMED = 5

Act = Callable[[HttpRequest, QuerySet[Any]], None]


class Sifted(ChangeList):
    """A list whose address was written by hand: a filter that no row can be asked for is one that is not there."""

    def get_results(self, request: HttpRequest) -> None:
        """See ChangeList. Raises IncorrectLookupParameters, upon which Django shows the list without filters."""
        try:
            super().get_results(request)
        except (OverflowError, ValueError) as error:
            raise IncorrectLookupParameters(error) from error


class Sifting:
    """Lists are `Sifted`, and what is chosen in them are rows."""

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """See ModelAdmin. What no row can be called by was written by hand, and nothing is done."""
        chosen = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        if not all(whole(number, most=MOST_NUMBER) is not None for number in chosen):
            messages.error(request, "Nothing was done: what was chosen are no rows of this list. Choose them again.")
            return HttpResponseRedirect(request.get_full_path())
        return super().response_action(request, queryset)  # type: ignore[misc]

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        """See ModelAdmin."""
        return Sifted


class Looking(Sifting, admin.ModelAdmin):
    """Rows that may be looked at by whoever may see services, and that no form adds, changes or deletes."""

    list_per_page = PER_PAGE
    list_max_show_all = PER_PAGE
    show_full_result_count = False
    actions_on_bottom = False

    class Media:
        css = {"all": ("css/admin.css",)}

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """See ModelAdmin."""
        return request.user.has_perm(SEE)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """See ModelAdmin."""
        return request.user.has_perm(SEE)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody: rows are made by what happens."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody: history goes by pruning, what runs is taken down."""
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Who may use the actions."""
        return request.user.has_perm(SEE) and request.user.has_perm(OPERATE)

    def theirs(
        self, request: HttpRequest, rows: QuerySet[Any], refused: list[str], need: str = OPERATE
    ) -> Iterator[Any]:
        """Those of the rows on whose services the user may act; why not on the others is added to `refused`."""
        for row in rows:
            reason = refusal(request.user, need, row if isinstance(row, Service) else row.service)
            if reason:
                refused.append(reason)
            else:
                yield row

    def say(self, request: HttpRequest, done: list[str], refused: list[str], verb: str) -> None:
        """Tell what an action did: `done` are names, `refused` sentences."""
        if done:
            rest = len(done) - NAMED
            more = f" and {rest} more" if rest > 0 else ""
            self.message_user(request, f"{', '.join(done[:NAMED])}{more}: {verb}.", messages.SUCCESS)
        for sentence in refused[:NAMED]:
            self.message_user(request, sentence, messages.WARNING)
        if len(refused) > NAMED:
            self.message_user(request, f"{len(refused) - NAMED} more were refused.", messages.WARNING)


def confirmed(question: str, description: str) -> Callable[[Callable[..., None]], Callable[..., HttpResponse | None]]:
    """An action of `Looking` that is carried out only after the user has answered `question` on a page of its own."""

    def wrap(act: Callable[..., None]) -> Callable[..., HttpResponse | None]:
        @admin.action(description=description, permissions=["operate"])
        def action(self: Looking, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
            if request.POST.get("confirmed") == "yes":
                act(self, request, queryset)
                return None
            across = request.POST.get("select_across") == "1"
            context = self.admin_site.each_context(request) | {
                "title": description,
                "question": question,
                "opts": self.opts,
                "count": queryset.count(),
                "shown": list(queryset[:PER_PAGE]),
                "action": act.__name__,
                "checkbox": helpers.ACTION_CHECKBOX_NAME,
                "selected": request.POST.getlist(helpers.ACTION_CHECKBOX_NAME),
                "across": "1" if across else "0",
            }
            return TemplateResponse(request, "admin/replicas/confirm.html", context)

        action.__name__ = act.__name__
        action.__doc__ = act.__doc__
        return action

    return wrap


def badge(word: str) -> SafeString | str:
    """A state or status as a badge; the style sheet gives it its colour."""
    return format_html('<span class="rc-badge rc-{}">{}</span>', word.lower().replace("_", "-"), word) if word else "-"


def block(text: str) -> SafeString | str:
    """A text of several lines, as it is."""
    return format_html('<pre class="rc-block">{}</pre>', text) if text else "-"
