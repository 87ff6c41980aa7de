"""The report in a browser: it loads in silence, filters filter, every number
opens its evidence, and axe-core finds nothing serious."""

from __future__ import annotations

import pytest

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


def settled(page):
    """Scroll through, so that every figure comes alive."""
    for figure in page.locator("figure").all():
        figure.scroll_into_view_if_needed()
        figure.locator(".drawing.alive svg.marks").wait_for()
    return page


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, size, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed (make test-browser)"
    )
    page = settled(opened(*WIDTHS[size], color_scheme=scheme))
    page.locator("details.stretch summary").first.click()
    page.locator(".grid [data-line]").first.focus()
    page.locator("details.pipeline summary").first.click()
    page.locator(".pipe [data-line]").first.focus()

    def check(where):
        found = axe.Axe().run(page).response["violations"]
        serious = [
            (v["id"], [node["html"][:200] for node in v["nodes"]])
            for v in found
            if v["impact"] in ("serious", "critical")
        ]
        assert serious == [], where

    check("the page")
    page.locator("td.ours button").first.click()
    page.locator("#evidence[open]").wait_for()
    check("the evidence")


def test_nothing_is_wider_than_a_phone(opened):
    page = settled(opened(*WIDTHS["phone"]))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_filters_filter(opened):
    page = opened()
    rows = page.locator("#heat tbody tr:visible")
    heads = page.locator("#heat thead th:visible")
    assert rows.count() == 3 and heads.count() == 4
    page.get_by_role("combobox", name="Kind").select_option("stream")
    assert rows.count() == 1 and "Rabbit" in rows.first.inner_text()
    assert page.locator("#shown").inner_text() == "1 of 3 programs"
    page.get_by_role("combobox", name="Kind").select_option("")
    page.get_by_role("searchbox", name="Cipher").fill("rc6")
    assert [row.get_attribute("data-name") for row in rows.all()] == ["rc6/plain"]
    page.get_by_role("checkbox", name="leon2").uncheck()
    assert heads.count() == 3
    page.get_by_role("button", name="All again").click()
    page.wait_for_function("document.querySelector('#shown').textContent.startsWith('3 ')")
    assert rows.count() == 3 and heads.count() == 4


def test_a_column_sorts(opened):
    page = opened()
    names = lambda: [row.get_attribute("data-name") for row in page.locator("#heat tbody tr").all()]  # noqa: E731
    page.locator("#heat th[data-sort=rv32] button").click()
    by_speed = names()
    assert (
        by_speed[-1] == "present/table"
        and page.locator("#heat th[data-sort=rv32]").get_attribute("aria-sort") == "ascending"
    )
    page.locator("#heat th[data-sort=rv32] button").click()
    assert names() == by_speed[::-1]


def test_every_number_opens_its_evidence(opened):
    page = opened()
    dialog = page.locator("#evidence")
    buttons = page.locator("td button:visible").all()
    assert len(buttons) > 8
    for button in buttons:
        button.click()
        assert dialog.is_visible()
        text = dialog.inner_text()
        assert "To get it again" in text or "Formula" in text
        page.keyboard.press("Escape")
        assert not dialog.is_visible()
    page.locator("td.ours button").first.click()
    text = dialog.inner_text()
    for shown in (
        "ciphermill run rc6 --on rv32",
        "machines/rv32.toml",
        "module hash",
        "lower",
        "figures.toml: t.a.cycles",
    ):
        assert shown in text


def test_a_derived_number_leads_to_what_it_is_made_of(opened):
    page = opened()
    page.locator("table.compare tbody tr").first.locator("td.ours button").nth(2).click()
    assert "Formula: rate" in page.locator("#evidence").inner_text()
    page.locator("#evidence button.link").first.click()
    assert "ciphermill run rc6" in page.locator("#evidence").inner_text()


def test_a_loop_is_walked_with_the_keyboard(opened):
    page = opened()
    page.locator("details.stretch summary").first.focus()
    page.keyboard.press("Enter")
    first = page.locator(".grid [data-line='0']")
    first.wait_for()
    first.focus()
    panel = page.locator("#kernels .panel")
    assert first.get_attribute("title").split("\n")[0] in panel.inner_text()
    page.keyboard.press("ArrowDown")
    here = page.evaluate("document.activeElement.dataset.line")
    assert here == "1" and page.locator(".grid .chosen").get_attribute("data-line") == "1"
    user = page.locator(".grid .use").first
    if user.count():
        needs = page.locator("#kernels .panel button.link")
        assert needs.count() > 0


def test_a_pipeline_is_walked_with_the_keyboard(opened):
    page = opened()
    page.locator("details.pipeline summary").first.focus()
    page.keyboard.press("Enter")
    first = page.locator(".pipe [data-line='0']")
    first.wait_for()
    first.focus()
    panel = page.locator("#pipelines .panel")
    assert first.inner_text() in panel.inner_text() and "fetch" in panel.inner_text()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.line") == "1"
    assert page.locator(".pipe tr.chosen [data-line]").get_attribute("data-line") == "1"
    page.keyboard.press("End")
    last = page.evaluate("document.activeElement.dataset.line")
    assert int(last) == page.locator(".pipe tbody tr").count() - 1
    # Stages stand where their cycles are: each begins right of the one before it.
    left = [box["x"] for box in (s.bounding_box() for s in page.locator(".pipe tbody tr").first.locator(".st").all())]
    assert left == sorted(left) and len({*left}) == len(left) >= 5


def test_the_theme_is_switched(opened):
    page = opened(color_scheme="light")
    ground = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    light = ground()
    switch = page.locator("#theme")
    switch.click()
    assert switch.inner_text() == "Theme: light" and ground() == light
    switch.click()
    assert switch.inner_text() == "Theme: dark" and ground() != light


def test_nothing_is_wider_than_paper(opened):
    """A4, across, within its margins."""
    page = opened(1047, 718)
    page.locator("details.stretch summary").first.click()
    page.locator(".grid [data-line]").first.wait_for()
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1047
    assert (
        page.evaluate("[...document.querySelectorAll('.scroll')].filter(s => s.scrollWidth > s.clientWidth + 1).length")
        == 0
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_white(opened, scheme):
    """Also where the screen is dark, by the system's choice or the reader's."""
    page = opened(color_scheme=scheme)
    figure = page.locator("figure").first
    figure.scroll_into_view_if_needed()
    figure.locator(".drawing.alive svg.marks").wait_for()
    for theme in ("system", "light", "dark"):
        page.emulate_media(media="print")
        colours = page.evaluate(
            "[getComputedStyle(document.body), getComputedStyle(document.querySelector('.compare td'))].flatMap(s => [s.color, s.backgroundColor])"
        )
        assert colours[:2] == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"] and colours[2] == "rgb(0, 0, 0)", theme
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.drawing.alive svg text')).fill") == "rgb(0, 0, 0)"
        )
        page.emulate_media(media="screen")
        page.locator("#theme").click()


def test_tables_stand_without_scripts(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("#heat tbody tr").count() == 3
    assert page.locator("table.compare tbody tr").count() == 2
    assert page.locator("figure svg").count() > 3
    assert not page.locator("#filters").is_visible()
