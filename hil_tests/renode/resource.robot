*** Settings ***
Documentation     A network description on Renode: skerry's own command writes the script, Renode runs it.
...               Runs under renode-test, which brings the keywords of Renode; `make test-renode` calls it.
Library           Process
Library           OperatingSystem
Library           Collections

*** Variables ***
${PROJECT}        ${CURDIR}/../..
${PYTHON}         ${PROJECT}/.venv/bin/python
${SKERRY}         ${PROJECT}/.venv/bin/skerry
${NETWORK}        ${CURDIR}/three_motes.toml
${PORT}           34567
# Lock-step quantum: a tick of the motes' clock, so that it goes on as on the chip. An acknowledgement waits for two of them and
# has 0.98 ms: 0.2ms is enough for that, and in time with the wall clock.
${QUANTUM}        0.03ms
${SCRIPT}         ${TEMPDIR}/skerry-renode-${PORT}.resc

*** Keywords ***
Create Network
    [Documentation]    All motes of ${NETWORK}, loaded and at virtual time 0; the root's UART is on ${PORT}.
    [Arguments]    ${speed}=max    ${quantum}=${QUANTUM}
    ${made}=    Run Process    ${SKERRY}    renode    ${NETWORK}    --speed    ${speed}    --quantum    ${quantum}
    ...    --port    ${PORT}    stdout=${SCRIPT}
    Should Be Equal As Integers    ${made.rc}    0    msg=${made.stderr}
    Execute Command    include @${SCRIPT}

Should Have Succeeded
    [Arguments]    ${process}
    Log    ${process.stdout}
    Log    ${process.stderr}
    Should Be Equal As Integers    ${process.rc}    0    msg=${process.stderr}
