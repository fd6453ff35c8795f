# How tools/demo.sh looks: headings, the picture of the network, lines that fit the terminal. A script sources this file
# after tools/demo_lib.sh. Nothing here starts, asks or ends anything.
#
# A pipe gets plain ASCII without escape sequences. A terminal gets box characters if its locale has them, and colours
# unless NO_COLOR is set.

is_terminal() { [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; }

columns=100
if is_terminal; then { columns=$(stty size <&3 | cut -d ' ' -f 2); } 3>&1; fi
[ "${columns:-0}" -gt 0 ] || columns=100

bold='' green='' red='' plain=''
if is_terminal && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi

say() { printf '%s\n' "$*" | fold -s -w "$columns"; }

heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# say_beside_bar TEXT... : a line while another process draws its bar on the line of the cursor.
say_beside_bar() {
    if is_terminal; then printf '\r\e[K'; fi
    say "$@"
}

# in_this_alphabet : box characters as ASCII where the reader may not have them.
in_this_alphabet() {
    if is_terminal && [ "$(locale charmap 2>/dev/null)" = UTF-8 ]; then
        cat
    else
        sed -e 's/─/-/g' -e 's/│/|/g' -e 's/✗/x/g' -e 's/┌\|┐\|└\|┘\|├\|┤/+/g'
    fi
}

# draw_network whole|cut : the four routers; with `cut`, router B is dead.
draw_network() {
    local b=$green c='' end=$plain box=B line=─ by_b='used' by_c='spare'
    if [ "$1" = cut ]; then b=$red c=$green box=✗ line=' ' by_b='dead' by_c='used'; fi
    if [ "$columns" -lt 44 ]; then
        printf '%s\n' "${b}A ─ $box ─ D  $by_b$end" "${c}A ─ C ─ D  $by_c$end"
    else
        printf '%s\n' \
            "               ${b}┌───┐$end" \
            "           ${b}┌─$line─┤ $box ├─$line─┐  $by_b$end" \
            "   ┌───┐   ${b}│   └───┘   │$end   ┌───┐" \
            "   │ A ├───┤           ├───┤ D │" \
            "   └───┘   ${c}│   ┌───┐   │$end   └───┘" \
            "  consumer ${c}└───┤ C ├───┘$end producer  ${c}$by_c$end" \
            "               ${c}└───┘$end"
    fi | in_this_alphabet
}
